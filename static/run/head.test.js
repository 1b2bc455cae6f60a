import assert from 'node:assert/strict';
import test from 'node:test';
import { kept } from './head.js';

test('kept says what an ended run left', () => {
  const run = { config: { model: 'hrr' }, checkpoint: 1000, step: 1118 };
  assert.equal(kept(run), 'The checkpoint at step 1,000 and the points up to step 1,118 are saved.');
  assert.equal(kept({ ...run, checkpoint: 0 }), 'No checkpoint was saved; the points up to step 1,118 are.');
  assert.equal(kept({ ...run, checkpoint: 0, step: 0 }), 'The run ended before its first step.');
  assert.equal(kept({ ...run, config: { model: 'external' } }), '');
});
