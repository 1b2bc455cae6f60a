import assert from 'node:assert/strict';
import test from 'node:test';
import { rows, upTo } from './evidence.js';

test('upTo finds the checkpoint at or before the crosshair', () => {
  const steps = [500, 1000, 1500];
  for (const [step, at] of [[1, 0], [500, 0], [999, 0], [1000, 1], [9999, 2]]) assert.equal(upTo(steps, step), at);
});

test('the matrix has a row per factor; undefined values count as 0', () => {
  assert.deepEqual(rows({ factors: ['shape', 'hue'], ownership: { nmi: [[0.5, null], [0, 1]] } }), [
    { factor: 'shape', cells: [0.5, 0] },
    { factor: 'hue', cells: [0, 1] },
  ]);
});
