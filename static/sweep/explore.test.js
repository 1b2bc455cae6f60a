import assert from 'node:assert/strict';
import { test } from 'node:test';
import { path, within } from './explore.js';

test('a line crosses its axes and breaks at missing values', () => {
  assert.equal(path([0, 1], 100), 'M50 238L150 34');
  assert.equal(path([0.5, -1, 0, 1], 100), 'M50 136M250 238L350 34');
});

test('limits exclude lines outside them, and lines without a value on a limited axis', () => {
  assert.ok(within([0.2, -1], [[0, 1], [0, 1]]));
  assert.ok(within([0.2, 0.9], [[0, 0.5], [0, 1]]));
  assert.ok(!within([0.6, 0.9], [[0, 0.5], [0, 1]]));
  assert.ok(!within([0.2, -1], [[0, 1], [0, 0.5]]));
});
