import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applied, changed } from './kept.js';

const data = {
  slots: [
    { index: 0, name: 'shape', called: '', pins: [4], codes: [{ code: 4, name: 'cube', classes: [0] }] },
    { index: 1, name: 'unused', called: 'spare', pins: [], codes: [] },
  ],
  groups: [{ key: 'shape', name: 'shape', called: '', slots: [0] }, { key: '', name: 'unused', called: 'spare', slots: [1] }],
};
const none = { slots: {}, groups: {}, codes: {}, pins: {} };
const after = (...changes) => applied(data, changes.reduce(changed, none));

test('names of slots, groups and codes override those of the file, and can be removed', () => {
  assert.deepEqual(applied(data, none), data);
  const named = after({ slot: 1, name: 'rest' }, { factor: 'shape', name: 'form' }, { slot: 0, code: 4, name: 'box' }, { slot: 0, code: 7, name: 'new' });
  assert.equal(named.slots[1].called, 'rest');
  assert.deepEqual(named.groups.map((g) => g.called), ['form', 'rest']);
  assert.deepEqual(named.slots[0].codes, [{ code: 4, name: 'box', told: 'cube', classes: [0] }, { code: 7, name: 'new', told: '7', classes: [] }]);
  const back = after({ slot: 0, code: 4, name: 'box' }, { slot: 0, code: 4, name: '' }, { slot: 1, name: '' });
  assert.equal(back.slots[0].codes[0].name, 'cube');
  assert.equal(back.slots[1].called, '');
});

test('pins are added to those of the file, and can be removed', () => {
  assert.deepEqual(after({ slot: 0, code: 7, pin: true }).slots[0].pins, [4, 7]);
  assert.deepEqual(after({ slot: 0, code: 7, pin: true }, { slot: 0, code: 4, pin: false }).slots[0].pins, [7]);
});
