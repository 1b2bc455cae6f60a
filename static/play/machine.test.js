import assert from 'node:assert/strict';
import test from 'node:test';
import { idle, step, THRESHOLD } from './machine.js';

const cell = (row, slot, code = 7) => ({ kind: 'cell', row, slot, code });
const entry = (slot, code) => ({ kind: 'entry', slot, code });
const image = { kind: 'image' };

/** run applies events and returns the last state and all effects. */
function run(...events) {
  let state = idle;
  const effects = [];
  for (const event of events) {
    const [next, got] = step(state, event);
    state = next;
    effects.push(...got);
  }
  return { state, effects, types: effects.map((e) => e.type), last: effects.at(-1) };
}

const down = (what, x = 0, y = 0) => ({ type: 'down', what, x, y });
const move = (what, x, y = 0) => ({ type: 'move', what, x, y });
const up = (what) => ({ type: 'up', what });
const key = (what) => ({ type: 'key', what });

test('a drag picks after the threshold, moves, and places on release', () => {
  const b = cell('b', 3, 290);
  const near = run(down(b), move(b, THRESHOLD - 1));
  assert.equal(near.state.phase, 'pressed');
  const { state, types, last } = run(down(b), move(b, THRESHOLD), move(cell('a', 3), 80), move(cell('a', 4), 160), up(cell('a', 4)));
  assert.deepEqual(types, ['pick', 'over', 'over', 'place']);
  assert.deepEqual(last.to, { row: 'a', slot: 4 });
  assert.equal(last.source.code, 290);
  assert.equal(last.by, 'drag');
  assert.equal(state.phase, 'idle');
});

test('a drag released elsewhere, or where it started, changes nothing', () => {
  for (const where of [null, cell('b', 3, 290)]) {
    const { types, state } = run(down(cell('b', 3, 290)), move(null, 50), up(where));
    assert.deepEqual(types, ['pick', 'cancel']);
    assert.equal(state.phase, 'idle');
  }
});

test('the first click picks, the second places', () => {
  const b = cell('b', 2, 5);
  const { types, last } = run(down(b), up(b), move(cell('a', 2), 30), down(cell('a', 2), 30), up(cell('a', 2)));
  assert.deepEqual(types, ['pick', 'over', 'place']);
  assert.deepEqual(last.to, { row: 'a', slot: 2 });
  assert.equal(last.by, 'click');
});

test('a second click on the code itself or on nothing cancels', () => {
  const b = cell('b', 2, 5);
  assert.deepEqual(run(down(b), up(b), down(b), up(b)).types, ['pick', 'cancel']);
  assert.deepEqual(run(down(b), up(b), down(null)).types, ['pick', 'cancel']);
});

test('an entry clicked twice is placed in its own slot of the shown row', () => {
  const e = entry(6, 31);
  const { last } = run(down(e), up(e), down(e), { ...up(e), row: 'b' });
  assert.equal(last.type, 'place');
  assert.deepEqual(last.to, { row: 'b', slot: 6 });
});

test('another entry replaces the held one', () => {
  const { state, types } = run(down(entry(6, 31)), up(entry(6, 31)), down(entry(6, 32)), up(entry(6, 32)));
  assert.deepEqual(types, ['pick', 'pick']);
  assert.equal(state.source.code, 32);
});

test('a drag can start while another code is held', () => {
  const { types, last } = run(down(cell('b', 0, 1)), up(cell('b', 0, 1)), down(cell('b', 1, 2)), move(null, 40), up(cell('a', 1)));
  assert.deepEqual(types, ['pick', 'pick', 'place']);
  assert.equal(last.source.code, 2);
});

test('keys pick and place; Escape cancels', () => {
  const placed = run(key(cell('b', 1, 9)), { type: 'hover', what: cell('a', 1) }, key(cell('a', 1)));
  assert.deepEqual(placed.types, ['pick', 'over', 'place']);
  assert.equal(placed.last.by, 'keys');
  assert.deepEqual(run(key(entry(1, 9)), { type: 'escape' }).types, ['pick', 'cancel']);
});

test('the enlarged image represents the slot of the code', () => {
  const dropped = run(down(entry(4, 8)), { ...move(image, 90), row: 'a' }, { ...up(image), row: 'a' });
  assert.deepEqual(dropped.last.to, { row: 'a', slot: 4 });
  const clicked = run(down(entry(4, 8)), up(entry(4, 8)), { ...down(image), row: 'b' });
  assert.deepEqual(clicked.last.to, { row: 'b', slot: 4 });
});

test('a code can be placed in another slot', () => {
  const { last } = run(key(cell('b', 1, 9)), key(cell('b', 5, 3)));
  assert.deepEqual([last.source.code, last.to], [9, { row: 'b', slot: 5 }]);
});

test('a pointer cancelled for scrolling ends a press, but keeps a code that was already held', () => {
  assert.equal(run(down(cell('a', 0)), { type: 'cancel' }).state.phase, 'idle');
  const { state, types } = run(down(cell('b', 0, 4)), up(cell('b', 0, 4)), down(cell('a', 0)), { type: 'cancel' });
  assert.equal(state.phase, 'held');
  assert.deepEqual(types, ['pick']);
  assert.deepEqual(run(down(cell('b', 0)), move(null, 30), { type: 'cancel' }).types, ['pick', 'cancel']);
});

test('events on neither source nor target do nothing', () => {
  for (const event of [down(null), down(image), up(null), key(null), key(image), { type: 'escape' }, { type: 'cancel' }, move(cell('a', 1), 9)]) {
    assert.deepEqual(run(event), { state: idle, effects: [], types: [], last: undefined });
  }
});

test('any sequence of events ends in a known phase, and Escape in idle', () => {
  let seed = 1;
  const random = (n) => (seed = (seed * 48271) % 2147483647) % n;
  const things = [null, image, cell('a', 0, 1), cell('a', 1, 2), cell('b', 0, 3), entry(0, 4), entry(1, 5)];
  const types = ['down', 'move', 'up', 'hover', 'key', 'cancel', 'escape'];
  for (let round = 0; round < 2000; round++) {
    let state = idle;
    for (let n = 0; n < 12; n++) {
      const event = { type: types[random(types.length)], what: things[random(things.length)], x: random(20), y: 0, row: 'a' };
      const [next, effects] = step(state, event);
      assert.ok(['idle', 'pressed', 'held'].includes(next.phase));
      for (const e of effects) if (e.type === 'place') assert.ok(e.to.slot >= 0 && ['a', 'b'].includes(e.to.row));
      state = next;
    }
    for (let n = 0; n < 2; n++) [state] = step(step(state, { type: 'cancel' })[0], { type: 'escape' });
    assert.equal(state.phase, 'idle');
  }
});
