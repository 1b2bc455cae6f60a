import assert from 'node:assert/strict';
import test from 'node:test';
import { count, duration, rate, value } from './format.js';

test('numbers are human-readable', () => {
  assert.equal(count(125000), '125,000');
  assert.equal(duration(48), '48 s');
  assert.equal(duration(90), '1 min 30 s');
  assert.equal(duration(1500), '25 min');
  assert.equal(duration(6000), '1 h 40 min');
  assert.equal(duration(NaN), '–');
  assert.equal(rate(4.256), '4.26');
  assert.equal(rate(42.26), '42.3');
  assert.equal(rate(0), '–');
  assert.equal(value(0.0001234), '1.23e−4');
  assert.equal(value(NaN), 'NaN');
  assert.equal(value(-0.5), '−0.5');
});
