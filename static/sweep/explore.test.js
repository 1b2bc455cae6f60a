import assert from 'node:assert/strict';
import { test } from 'node:test';
import { path, within } from './explore.js';

test('a line runs over its axes and breaks where there is nothing', () => {
  assert.equal(path([0, 1], 100), 'M50 238L150 34');
  assert.equal(path([0.5, -1, 0, 1], 100), 'M50 136M250 238L350 34');
});

test('limits leave out what lies beyond them, and once limited what is absent', () => {
  assert.ok(within([0.2, -1], [[0, 1], [0, 1]]));
  assert.ok(within([0.2, 0.9], [[0, 0.5], [0, 1]]));
  assert.ok(!within([0.6, 0.9], [[0, 0.5], [0, 1]]));
  assert.ok(!within([0.2, -1], [[0, 1], [0, 0.5]]));
});
