// Cooperative scheduling: splits background work into short pieces, so that user input is handled in between.

const PIECE = 5; // ms of work between two frames

/** hand resolves on the first user interaction. */
export const hand = new Promise((done) => {
  for (const type of ['pointermove', 'pointerdown', 'keydown', 'focusin']) globalThis.addEventListener?.(type, done, { once: true, passive: true, capture: true });
});

/** idle resolves when the browser is idle, or after a second. */
export const idle = () => new Promise((done) => (globalThis.requestIdleCallback ?? setTimeout)(() => done(), { timeout: 1000 }));

/** onScreen resolves once drawn content is on the screen, or after 100 ms, as in a hidden tab. */
export const onScreen = () => new Promise((done) => {
  requestAnimationFrame(() => setTimeout(done));
  setTimeout(done, 100);
});

/** atOnce runs a generator to its end. */
export function atOnce(steps) {
  while (!steps.next().done);
}

/** inTurns runs a generator in pieces, one per frame, while wanted returns true. It resolves to whether the generator finished. */
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
