import assert from 'node:assert/strict';
import { test } from 'node:test';
import { join } from './compare.js';

test('lines of unequal steps share one axis; what a line lacks is left out, what has no number is a gap', () => {
  assert.deepEqual(join([{ steps: [1, 3], values: [10, null] }, { steps: [2, 3], values: [5, 6] }]), [[1, 2, 3], [10, undefined, null], [undefined, 5, 6]]);
  assert.deepEqual(join([]), [[]]);
});
