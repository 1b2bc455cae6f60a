import assert from 'node:assert/strict';
import test from 'node:test';
import { blocked, title } from './notify.js';

test('blocked explains why a browser cannot notify', () => {
  assert.match(blocked({ isSecureContext: false }), /need HTTPS/);
  assert.match(blocked({ isSecureContext: true }), /does not support notifications/);
  assert.match(blocked({ Notification: { permission: 'denied' } }), /blocks notifications/);
  for (const permission of ['default', 'granted']) assert.equal(blocked({ Notification: { permission } }), '');
});

test('the title has the run and the kind of alert', () => {
  assert.equal(title({ name: 'first light', kind: 'collapsed' }), 'first light: collapsed');
  assert.equal(title({ name: 'first light', kind: 'rule' }), 'first light: rule holds');
});
