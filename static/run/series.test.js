import assert from 'node:assert/strict';
import test from 'node:test';
import { after, clock, Series, Smoother, slice, Store, within } from './series.js';

test('a series has every step once, despite overlaps', () => {
  const s = new Series();
  s.append([[1, 5], [2, 4]]);
  s.append([[2, 99], [3, 'NaN'], [4, '+Inf']]);
  assert.deepEqual(s.steps, [1, 2, 3, 4]);
  assert.equal(s.values[1], 4);
  assert.ok(Number.isNaN(s.values[2]));
  assert.equal(s.values[3], Infinity);
});

test('a rewind drops later points, and new points follow', () => {
  const store = new Store();
  assert.ok(store.append({ from: 0, to: 3, attempt: 1, series: { total: [[1, 1], [2, 2], [3, 3]], 'psnr/eval': [[2, 20]] } }));
  store.rewind(1, 2);
  assert.equal(store.head, 1);
  assert.deepEqual(store.get('psnr/eval').steps, []);
  assert.ok(store.append({ from: 1, to: 2, attempt: 2, series: { total: [[2, 22]] } }));
  assert.deepEqual(store.get('total').values, [1, 22]);
});

test('a frame after a gap is rejected', () => {
  const store = new Store();
  assert.equal(store.append({ from: 7, to: 8, attempt: 1, series: { total: [[8, 1]] } }), false);
  assert.equal(store.head, 0);
});

test('smoothing starts unbiased, and past values never change', () => {
  const s = new Series();
  const smoother = new Smoother(0.9);
  s.append([[1, 10]]);
  smoother.extend(s);
  assert.ok(Math.abs(smoother.values[0] - 10) < 1e-12, 'the first average is the first value');
  s.append([[2, 20]]);
  smoother.extend(s);
  const expected = (0.9 * 0.1 * 10 + 0.1 * 20) / (1 - 0.81); // m₂ / (1 − 0.9²)
  assert.ok(Math.abs(smoother.values[1] - expected) < 1e-12);
  const before = [...smoother.values];
  s.append([[3, -1e6], [4, 'NaN'], [5, 1]]);
  smoother.extend(s);
  assert.deepEqual(smoother.values.slice(0, 2), before);
  assert.ok(Number.isFinite(smoother.values[4]), 'non-finite values are skipped');
});

test('a slice keeps one neighbour on each side', () => {
  const steps = [1, 2, 3, 4, 5, 6];
  assert.deepEqual(slice(steps, steps, [3, 4]).steps, [2, 3, 4, 5]);
  assert.equal(within(steps, [3, 4]), 2);
  assert.equal(after(steps, 3), 3);
});

test('training time is batch over rate, without pauses', () => {
  const speed = new Series();
  speed.append([[1, 10], [2, 10], [3, 'NaN'], [4, 20]]);
  const at = clock(speed, 40);
  assert.equal(at(1), 4);
  assert.equal(at(2), 8);
  assert.equal(at(3), 12, 'a non-finite rate repeats the last one');
  assert.equal(at(4), 14);
});
