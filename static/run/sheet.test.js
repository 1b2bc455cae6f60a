import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lastSheet } from './sheet.js';

test('sheets are due after the first step, every sample_every-th, and the last', () => {
  const config = { sample_every: 200, steps: 1050 };
  for (const [step, due] of [[0, 0], [1, 1], [199, 1], [200, 200], [1049, 1000], [1050, 1050]]) assert.equal(lastSheet(step, config), due, `step ${step}`);
});
