import assert from 'node:assert/strict';
import test from 'node:test';
import { blocked, title } from './notify.js';

test('why a browser cannot notify is a sentence', () => {
  assert.match(blocked({ isSecureContext: false }), /need HTTPS/);
  assert.match(blocked({ isSecureContext: true }), /has no notifications/);
  assert.match(blocked({ Notification: { permission: 'denied' } }), /blocks notifications/);
  for (const permission of ['default', 'granted']) assert.equal(blocked({ Notification: { permission } }), '');
});

test('a notification is headed by run and kind', () => {
  assert.equal(title({ name: 'first light', kind: 'collapsed' }), 'first light: collapsed');
  assert.equal(title({ name: 'first light', kind: 'rule' }), 'first light: rule holds');
});
