import assert from 'node:assert/strict';
import { test } from 'node:test';
import { across, join, unread } from './curves.js';

test('lines of different steps share one axis; missing points are skipped, null values are gaps', () => {
  assert.deepEqual(join([{ xs: [1, 3], values: [10, null] }, { xs: [2, 3], values: [5, 6] }]), [[1, 2, 3], [10, undefined, null], [undefined, 5, 6]]);
  assert.deepEqual(join([]), [[]]);
});

test('the x axis counts steps, images or seconds of training', () => {
  const line = { steps: [1, 2, 4], seconds: [0.5, 1, 2] };
  assert.deepEqual(across('step', line, 16, 2), [1, 2, 4]);
  assert.deepEqual(across('images', line, 16, 2), [16, 32, 64]);
  assert.deepEqual(across('time', line, 16, 2), [0.5, 1, 2]);
  assert.equal(across('time', { steps: [1] }, 16, 2), null);
});

test('lines with nearly equal times share cells of the time axis', () => {
  const [a, b] = [[10.0001, 20.0002], [10.0002, 19.9999]].map((seconds) => across('time', { steps: [1, 2], seconds }, 16, 40));
  assert.deepEqual(a, b);
});

test('unusable URL parameters are listed', () => {
  const of = (query) => unread(new URLSearchParams(query), new Set(['total', 'psnr/eval']));
  assert.deepEqual(of('runs=a,b&series=total,psnr/eval&x=time&smooth=0.5&log=1&members=0&rule=none'), []);
  assert.deepEqual(of('series=total,none&x=moon&smooth=2&log=yes&members='), ['series=none', 'x=moon', 'smooth=2', 'log=yes']);
});
