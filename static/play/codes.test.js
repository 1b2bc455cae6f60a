import assert from 'node:assert/strict';
import test from 'node:test';
import { difference, edits, format, interpolation, moved, natural, parse, percent, put, same, swaps, writer } from './codes.js';
import { equal, query } from './address.js';
import { DEPTH, History } from './history.js';

test('parses formatted tuples and rejects others', () => {
  assert.deepEqual(parse('17.301.4', 3, 512), [17, 301, 4]);
  assert.equal(format([17, 301, 4]), '17.301.4');
  for (const bad of ['', '1.2', '1.2.512', '1.2.-3', '1.2.x', '1.2.3.4', '1..3']) assert.equal(parse(bad, 3, 512), null, bad);
});

test('formats codes that represent real numbers as those numbers', () => {
  assert.deepEqual([0, 17].map(writer({ real: false, k: 512 })), ['0', '17']);
  assert.deepEqual([0, 1024, 1025, 1040, 928, 2048].map(writer({ real: true, k: 2049 })), ['-16.00', '0.00', '+0.02', '+0.25', '-1.50', '+16.00']);
});

test('each swap takes one slot of B; the interpolation takes one more at every step and ends at B', () => {
  const [a, b] = [[1, 2, 3], [7, 2, 9]];
  assert.deepEqual(swaps(a, b), [[7, 2, 3], [1, 2, 3], [1, 2, 9]]);
  assert.deepEqual(interpolation(a, b, [2, 0, 1]), [[1, 2, 3], [1, 2, 9], [7, 2, 9], [7, 2, 9]]);
  for (const order of [[0, 1, 2], [2, 1, 0], [1, 2, 0]]) assert.deepEqual(interpolation(a, b, order).at(-1), b);
  assert.deepEqual(a, [1, 2, 3]);
  assert.deepEqual(put(a, 1, 5), [1, 5, 3]);
  assert.deepEqual(edits([1, 5, 3], a), [{ slot: 1, from: 2, to: 5 }]);
});

test('an order keeps every slot when one moves', () => {
  assert.deepEqual(moved([0, 1, 2, 3], 0, 2), [1, 2, 0, 3]);
  assert.deepEqual(moved([0, 1, 2, 3], 3, 0), [3, 0, 1, 2]);
  assert.deepEqual(moved([0, 1, 2, 3], 1, 99), [0, 2, 3, 1]);
  assert.deepEqual(natural(3), [0, 1, 2]);
});

test('a difference counts pixels that an eye may see', () => {
  const x = new Uint8Array(12), y = new Uint8Array(12);
  y[0] = 255; y[4] = 8; y[9] = 9;
  const d = difference(x, y, 3);
  assert.deepEqual([...d.map], [255, 8, 0, 9]);
  assert.equal(d.changed, 0.5);
  assert.equal(d.most, 255);
  assert.deepEqual([0, 0.0005, 0.1234, 1].map(percent), ['0 %', '< 0.1 %', '12.3 %', '100.0 %']);
});

const side = (index, codes) => ({ index, codes });
const state = (codes, more = {}) => ({ a: side(5, [1, 2]), b: side(6, [3, 4]), codes, bcodes: [3, 4], order: [0, 1], ...more });

test('a query holds the state without redundant parameters', () => {
  assert.equal(query(state([1, 2])), 'a=5&b=6&codes=1.2');
  assert.equal(query(state([1, 9], { bcodes: [3, 0], order: [1, 0] })), 'a=5&b=6&codes=1.9&bcodes=3.0&order=1.0');
  assert.equal(query(state([1, 2], { b: side(-1, [3, 4]) })), 'a=5&codes=1.2&bcodes=3.4');
  assert.ok(equal(state([1, 2]), state([1, 2])));
  assert.ok(!equal(state([1, 2]), state([2, 1])));
});

test('undo goes back, redo forward, an edit clears redo, and at least 100 steps are kept', () => {
  const h = new History(0);
  assert.equal(h.undo(), null);
  for (let n = 1; n <= 3; n++) h.push(n);
  assert.deepEqual([h.undo(), h.undo(), h.redo(), h.present], [2, 1, 2, 2]);
  h.push(9);
  assert.equal(h.redo(), null);
  assert.deepEqual([h.undo(), h.undo(), h.undo(), h.undo()], [2, 1, 0, null]);
  assert.ok(DEPTH >= 100);
  for (let n = 0; n < DEPTH + 50; n++) h.push(n);
  let depth = 0;
  while (h.undo() !== null) depth++;
  assert.equal(depth, DEPTH);
});

test('history survives a reload of the same URL, but not of another', () => {
  const h = new History(state([1, 2]));
  h.push(state([7, 2]));
  const saved = JSON.parse(JSON.stringify(h));
  const back = History.restore(saved, state([7, 2]), equal);
  assert.ok(back.canUndo && same(back.undo().codes, [1, 2]));
  assert.ok(!History.restore(saved, state([8, 2]), equal).canUndo);
  assert.ok(!History.restore(null, state([8, 2]), equal).canUndo);
  assert.ok(!History.restore({ past: 3 }, state([8, 2]), equal).canUndo);
});
