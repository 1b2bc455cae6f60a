import assert from 'node:assert/strict';
import { test } from 'node:test';
import { robust } from './axis.js';

const wave = Array.from({ length: 400 }, (_, i) => Math.sin(i));

test('few values, or values near the others, have no outliers', () => {
  assert.equal(robust([1, 2, 1000]), null);
  assert.equal(robust(wave), null);
  assert.equal(robust(Array(100).fill(3)), null);
});

test('a few outliers do not compress the range', () => {
  const [lo, hi] = robust([...wave, 1e6, -40]);
  assert.ok(lo >= -2.1 && lo <= -1 && hi >= 1 && hi <= 2.1, `${lo} to ${hi}`);
});

test('the range contains at least 98% of any values', () => {
  for (let n = 0; n < 300; n++) {
    const values = Array.from({ length: 40 + n }, () => (Math.random() - 0.5) * 10 ** (Math.random() * 8));
    const range = robust(values);
    if (!range) continue;
    const inside = values.filter((v) => v >= range[0] && v <= range[1]).length;
    assert.ok(inside >= 0.97 * values.length - 1, `${inside} of ${values.length}`);
  }
});
