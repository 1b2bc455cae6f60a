import assert from 'node:assert/strict';
import test from 'node:test';
import { inside, taken, Zoom } from './zoom.js';

test('the point between the fingers stays between them', () => {
  assert.deepEqual(taken([0, 100], 0.5, 0.5, 0.5), [25, 75]);
  assert.deepEqual(taken([0, 100], 0.25, 0.25, 2), [-25, 175]);
  assert.deepEqual(taken([100, 200], 0.5, 0.25, 1), [125, 225], 'to the left: later steps come into view');
  const [lo, hi] = taken([10, 90], 0.3, 0.8, 0.4);
  assert.ok(Math.abs(lo + (hi - lo) * 0.8 - (10 + 80 * 0.3)) < 1e-9);
  assert.ok(Math.abs(hi - lo - 32) < 1e-9);
});

test('a span is shifted into the whole without shortening', () => {
  assert.deepEqual(inside([-20, 30], [0, 100], 2), [0, 50]);
  assert.deepEqual(inside([80, 130], [0, 100], 2), [50, 100]);
  assert.deepEqual(inside([40, 60], [0, 100], 2), [40, 60]);
  assert.deepEqual(inside([50, 50.5], [0, 100], 2), [49.25, 51.25], 'no narrower than least');
  assert.equal(inside([-1, 100], [0, 100], 2), null, 'the whole is not a zoom');
  assert.equal(inside([1, 1], [1, 1], 2), null);
});

/** hand returns a plot 200 px wide over steps 1 to 1001 and functions that send touches to it: positions in px, times in ms. */
function hand() {
  const done = { shown: undefined, moving: undefined, read: null };
  const whole = [1, 1001];
  let range = null;
  const u = {
    over: { clientWidth: 200, clientHeight: 100, getBoundingClientRect: () => ({ left: 0, top: 0 }) },
    cursor: { left: -10 },
    scales: { x: { min: whole[0], max: whole[1] } },
    setCursor: ({ left }) => (done.read = u.cursor.left = left),
  };
  const area = new EventTarget();
  new Zoom(area, {
    u: () => u, zoomed: () => range !== null, whole: () => whole, least: () => 2,
    show: (span, moving) => {
      range = span;
      Object.assign(done, { shown: span?.map(Math.round) ?? null, moving });
      [u.scales.x.min, u.scales.x.max] = span ?? whole;
    },
  });
  const send = (kind, fields) => area.dispatchEvent(Object.assign(new Event(kind, { cancelable: true }), fields));
  const finger = (kind) => (pointerId, clientX, at, clientY = 50, pointerType = 'touch') => {
    const e = Object.assign(new Event(kind), { pointerId, pointerType, isPrimary: pointerId === 1, clientX, clientY });
    Object.defineProperty(e, 'timeStamp', { value: at });
    area.dispatchEvent(e);
  };
  return {
    done, area, down: finger('pointerdown'), move: finger('pointermove'), up: finger('pointerup'), cancel: finger('pointercancel'),
    key: (key, fields) => send('keydown', { key, ...fields }),
    scrolls: (fingers = 1) => send('touchmove', { touches: { length: fingers } }),
  };
}

globalThis.requestAnimationFrame = (f) => void f();
globalThis.cancelAnimationFrame = () => {};

test('two fingers zoom, the remaining one pans, lifting it ends the move', () => {
  const h = hand();
  h.down(1, 50, 0);
  h.down(2, 100, 10);
  assert.equal(h.scrolls(2), false, 'two fingers do not scroll the page');
  h.move(2, 150, 20);
  assert.deepEqual([h.done.shown, h.done.moving], [[126, 626], true]); // twice as far apart; step 376 goes from 75 px to 100 px
  h.up(2, 150, 30);
  h.move(1, 30, 40); // 20 px are 50 steps
  assert.deepEqual(h.done.shown, [176, 676]);
  h.up(1, 30, 50);
  assert.deepEqual([h.done.shown, h.done.moving], [[176, 676], false]);
  assert.equal(h.done.read, null, 'the crosshair does not move');
});

test('one finger moves the crosshair, and pans once zoomed', () => {
  const h = hand();
  h.down(1, 100, 0);
  h.move(1, 120, 20);
  assert.equal(h.done.read, 120);
  assert.equal(h.scrolls(), false);
  h.up(1, 120, 30);
  assert.equal(h.done.shown, undefined);
  h.key('+'); // about the crosshair
  assert.deepEqual(h.done.shown, [301, 801]);
  h.down(1, 100, 1000);
  h.move(1, 20, 1020);
  h.up(1, 20, 1030);
  assert.deepEqual(h.done.shown, [501, 1001]);
  assert.equal(h.done.read, 120);
});

test('vertical moves scroll the page unless the finger was held', () => {
  const h = hand();
  h.down(1, 100, 0);
  h.move(1, 105, 20, 80);
  assert.equal(h.scrolls(), true, 'the page scrolls');
  h.cancel(1, 105, 21, 80);
  assert.deepEqual([h.done.read, h.done.shown], [null, undefined]);
  h.key('+');
  h.down(1, 100, 1000);
  h.move(1, 130, 1500, 80);
  assert.equal(h.scrolls(), false);
  h.up(1, 130, 1510, 80);
  assert.equal(h.done.read, 130, 'a held finger moves the crosshair and does not pan');
  assert.deepEqual(h.done.shown, [251, 751]);
});

test('a tap moves the crosshair, a double tap shows everything, two distant taps do not', () => {
  const h = hand();
  const tap = (x, at) => {
    h.down(1, x, at);
    h.up(1, x, at + 50);
  };
  h.key('+');
  tap(20, 0);
  assert.equal(h.done.read, 20);
  tap(120, 200);
  assert.deepEqual([h.done.read, h.done.shown], [120, [251, 751]]);
  tap(125, 400);
  assert.equal(h.done.shown, null);
});

test('a mouse is left to the plot', () => {
  const h = hand();
  h.down(1, 50, 0, 50, 'mouse');
  h.move(1, 150, 20, 50, 'mouse');
  h.up(1, 150, 30, 50, 'mouse');
  assert.deepEqual([h.done.read, h.done.shown], [null, undefined]);
});

test('keys move the crosshair, pan and zoom', () => {
  const h = hand();
  h.key('ArrowRight');
  assert.equal(h.done.read, 104);
  h.key('ArrowLeft', { shiftKey: true });
  assert.equal(h.done.read, 84);
  h.key('+');
  assert.deepEqual(h.done.shown, [211, 711]);
  for (let i = 0; i < 6; i++) h.key('ArrowLeft', { shiftKey: true });
  assert.equal(h.done.read, 0);
  assert.deepEqual(h.done.shown, [121, 621], 'at the edge the view moves: 36 px are 90 steps');
  h.key('-');
  assert.equal(h.done.shown, null);
  h.key('+');
  h.key('0');
  assert.equal(h.done.shown, null);
  h.key('+', { ctrlKey: true });
  assert.equal(h.done.shown, null, 'Ctrl + is left to the browser');
});

test('a wheel with Ctrl zooms about the pointer and settles, with Shift pans, alone scrolls the page', async () => {
  const h = hand();
  const turn = (fields) => {
    const e = Object.assign(new Event('wheel', { cancelable: true }), { deltaY: 0, deltaX: 0, deltaMode: 0, clientX: 50, clientY: 50, ctrlKey: false, metaKey: false, shiftKey: false, ...fields });
    h.area.dispatchEvent(e);
    return e.defaultPrevented;
  };
  assert.equal(turn({ deltaY: -100 }), false);
  assert.equal(h.done.shown, undefined);
  assert.equal(turn({ deltaY: -100, ctrlKey: true }), true);
  const [lo, hi] = h.done.shown;
  assert.ok(Math.abs(lo + (hi - lo) / 4 - 251) < 2, 'the step under the pointer stays');
  assert.ok(hi - lo < 700 && h.done.moving);
  turn({ deltaY: 40, shiftKey: true });
  assert.ok(h.done.shown[0] > lo && Math.abs(h.done.shown[1] - h.done.shown[0] - (hi - lo)) < 2);
  await new Promise((r) => setTimeout(r, 250));
  assert.equal(h.done.moving, false);
});
