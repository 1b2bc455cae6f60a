import assert from 'node:assert/strict';
import { test } from 'node:test';
import { part, suggest } from './complete.js';

const fields = [
  { name: 'state', label: 'State', group: 'run', kind: 'text', choices: ['running', 'failed'] },
  { name: 'tag', label: 'Tags', group: 'run', kind: 'set', choices: ['night', 'a,b'] },
  { name: 'star', label: 'Star', group: 'run', kind: 'flag', choices: ['yes', 'no'] },
  { name: 'lr', label: 'Learning rate η', group: 'hyperparameter', kind: 'number' },
  { name: 'lr_schedule', label: 'Learning rate schedule', group: 'hyperparameter', kind: 'text', choices: ['constant', 'wsd'] },
];

test('the part before the cursor is a name, or a value after an operator', () => {
  for (const [text, want] of [
    ['', { at: 0, name: null, typed: '' }],
    ['model=hrr l', { at: 10, name: null, typed: 'l' }],
    ['-fa', { at: 1, name: null, typed: 'fa' }],
    ['(st', { at: 1, name: null, typed: 'st' }],
    ['state=ru', { at: 6, name: 'state', typed: 'ru' }],
    ['state!=running,fa', { at: 15, name: 'state', typed: 'fa' }],
    ['lr<=1', { at: 4, name: 'lr', typed: '1' }],
    ['tag:', { at: 4, name: 'tag', typed: '' }],
  ])
    assert.deepEqual(part(text, text.length), want, text);
});

test('suggests names and values, prefix matches first', () => {
  const of = (text) => suggest(fields, part(text, text.length)).map((s) => s.put);
  assert.deepEqual(of('l'), ['lr', 'lr_schedule']);
  assert.deepEqual(of('rate'), ['lr', 'lr_schedule']);
  assert.deepEqual(of('sta'), ['state', 'star ']);
  assert.deepEqual(of('state='), ['running ', 'failed ']);
  assert.deepEqual(of('state=f'), ['failed ']);
  assert.deepEqual(of('tag:a'), ['"a,b" ']);
  assert.deepEqual(of('lr<1'), []);
  assert.deepEqual(of('nothing=1'), []);
});
