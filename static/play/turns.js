// Taking turns: what the page does by itself is cut into short pieces, so that whoever uses it is heard in between.

const PIECE = 5; // ms of work between two frames

/** hand resolves once somebody uses the page. */
export const hand = new Promise((done) => {
  for (const type of ['pointermove', 'pointerdown', 'keydown', 'focusin']) globalThis.addEventListener?.(type, done, { once: true, passive: true, capture: true });
});

/** idle resolves when the browser has nothing more urgent to do, at most a second from now. */
export const idle = () => new Promise((done) => (globalThis.requestIdleCallback ?? setTimeout)(() => done(), { timeout: 1000 }));

/** onScreen resolves once what was drawn is on the screen; in a page that nobody looks at, soon. */
export const onScreen = () => new Promise((done) => {
  requestAnimationFrame(() => setTimeout(done));
  setTimeout(done, 100);
});

/** atOnce runs a generator to its end. */
export function atOnce(steps) {
  while (!steps.next().done);
}

/** inTurns runs a generator, a piece per frame, as long as it is wanted; it resolves to whether it was run to its end. */
export async function inTurns(steps, wanted) {
  let begun = performance.now();
  for (const _ of steps) {
    if (performance.now() - begun < PIECE) continue;
    await onScreen();
    if (!wanted()) return false;
    begun = performance.now();
  }
  return true;
}
