import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sentence } from './progress.js';

test('sentence describes the progress of a report', () => {
  const zip = { name: 'report.zip', file: '', number: 0, of: 0, share: 0, ended: false, failed: false };
  assert.equal(sentence(zip), 'Preparing report.zip…');
  assert.equal(sentence({ ...zip, file: 'curves.csv', number: 3, of: 41, share: 0.437 }), 'Writing curves.csv (file 3 of 41): 43% of its points…');
  assert.equal(sentence({ ...zip, file: 'card.md', number: 1, of: 1 }), 'Writing card.md…');
  assert.equal(sentence({ ...zip, ended: true, share: 1 }), 'report.zip is complete.');
  assert.equal(sentence({ ...zip, ended: true, failed: true }), 'report.zip was not completed. Download it again.');
});
