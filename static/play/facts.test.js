import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changes, factorOf, hit, intends, wanted } from './facts.js';
import { Names } from './names.js';
import { Probe } from './probe.js';

const slots = [
  { known: true, name: 'hue', first: 0, codes: [{ code: 4, name: '0.4', classes: [4] }, { code: 5, name: '0.5/0.6', classes: [5, 6] }] },
  { known: true, name: 'hue', first: 0, codes: [] }, { known: true, name: 'mixed', first: 1, codes: [] }, { known: true, name: 'shape', first: 1, codes: [] },
];
const names = new Names(slots, String);
const side = (classes, codes) => ({ classes, codes });

test('hit', () => {
  assert.equal(hit(25, 27, 20), true);
  assert.equal(hit(23.9, 27, 20), false); // more than 3 dB below the reconstruction
  assert.equal(hit(25, 27, 25), false); // no closer than before the swap
});

test('classifies changes as intended, leaked or missed', () => {
  const kinds = (...args) => changes(...args).map((c) => c.kind);
  assert.deepEqual(kinds([1, 2, 3], [4, 2, 0], new Set([0]), [4, 2, 3]), ['intended', 'none', 'leaked']);
  assert.deepEqual(kinds([1, 2, 3], [1, 2, 3], new Set([0]), [4, 2, 3]), ['missed', 'none', 'none']);
  assert.deepEqual(kinds([1, 2, 3], [1, 2, 3], new Set([0]), [1, 2, 3]), ['none', 'none', 'none']);
  assert.deepEqual(kinds([1, 2, 3], [4, 2, 3], null, null), ['other', 'none', 'none']);
});

test('intends ignores slots without a factor', () => {
  assert.deepEqual(slots.map(factorOf), [0, 0, -1, 1]);
  assert.deepEqual(intends(slots, [0, 1, 3]), new Set([0, 1]));
  assert.equal(intends(slots, [0, 2]), null);
  assert.deepEqual(intends(slots, [2, 3]), new Set([1])); // a mixed slot belongs to the slot that is named after its first factor
});

test('wanted returns the classes that edited codes should give', () => {
  const a = side([1, 2], [10, 11, 12, 13]), b = side([8, 9], [20, 21, 22, 23]);
  const want = (codes) => wanted(a, b, codes, slots, names);
  assert.deepEqual(want([10, 11, 12, 13]), [1, 2]);
  assert.deepEqual(want([20, 21, 12, 13]), [8, 2]);
  assert.deepEqual(want([20, 11, 12, 23]), [8, 9]);
  assert.deepEqual(want([4, 11, 12, 13]), [4, 2]); // a code from the palette that represents one value
  assert.equal(want([5, 11, 12, 13]), null); // one that represents two
  assert.equal(want([4, 21, 12, 13]), null); // slots that contradict each other
  assert.equal(want([10, 11, 22, 13]), null); // a slot without a factor
  assert.deepEqual(want([10, 11, 22, 23]), [1, 9]); // but it belongs to its group
  assert.equal(want([10, 11, 30, 23]), null); // unless its code is not the group's
  assert.equal(wanted(side([], [10, 11, 12, 13]), b, [20, 21, 12, 13], slots, names), null); // an upload
});

/** file returns a probe file for 8 × 8 images of one channel, with class 1 for bright images. */
function file() {
  const matrices = [[16, 1], [16, 1], [16, 1], [1, 1], [1, 2]];
  const head = new TextEncoder().encode(JSON.stringify({ h: 8, w: 8, c: 1, sizes: [2], accuracy: [1], matrices }));
  const out = [];
  const floats = (...v) => out.push(...new Uint8Array(new Float32Array(v).buffer));
  out.push(...new Uint8Array(new Uint32Array([head.length]).buffer), ...head);
  floats(0, 0, 0); // biases
  for (let i = 0; i < 3; i++) { floats(1 / 127); out.push(...new Array(16).fill(127)); }
  floats(1 / 127); out.push(127);
  floats(1 / 127, 1 / 127); out.push(256 - 127, 127);
  return new Uint8Array(out).buffer;
}

test('the probe applies its weights and rejects a file that is too long', () => {
  const probe = new Probe(file());
  assert.deepEqual(probe.read(new Uint8Array(64).fill(250)), [1]);
  assert.deepEqual(probe.read(new Uint8Array(64).fill(5)), [0]);
  const longer = new Uint8Array(file().byteLength + 1);
  longer.set(new Uint8Array(file()));
  assert.throws(() => new Probe(longer.buffer), /damaged/);
});
