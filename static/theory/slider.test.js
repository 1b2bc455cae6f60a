import assert from 'node:assert/strict';
import test from 'node:test';
import { STEPS, place, valueAt } from './slider.js';

test('sliders: ends, middle, and values out of range', () => {
  const linear = { min: 1, max: 64, whole: true };
  const log = { min: 8, max: 4096, log: true, whole: true };
  for (const s of [linear, log]) {
    assert.equal(place(s.min, s), 0);
    assert.equal(place(s.max, s), STEPS);
    assert.equal(place(1e9, s), STEPS);
    assert.equal(place(-5, { ...s, log: false }), 0);
    assert.equal(valueAt(0, s), s.min);
    assert.equal(valueAt(STEPS, s), s.max);
  }
  assert.equal(valueAt(STEPS / 2, log), 181);
  assert.equal(valueAt(STEPS / 2, { min: 0.01, max: 10, log: true }), 0.316);
  for (const v of [8, 100, 512, 4096]) assert.ok(Math.abs(valueAt(place(v, log), log) / v - 1) < 0.01);
});
