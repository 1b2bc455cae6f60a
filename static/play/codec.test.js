import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { Codec, Refused, compile, noisy } from './codec.js';
import { joined } from './frozen.js';

const module = await compile(readFileSync(new URL('./codec.wasm', import.meta.url)));

test('rejects files that are not weights, with a sentence', () => {
  const page = new TextEncoder().encode('<!doctype html>'.repeat(20)).buffer;
  const head = new Uint8Array(200);
  head.set(new TextEncoder().encode('SLOTWTS'));
  head[7] = 1;
  for (const [file, words] of [[new ArrayBuffer(0), /too short/], [new ArrayBuffer(95), /too short/], [page, /not a weights file/], [head.buffer, /damaged/]]) {
    assert.throws(() => new Codec(module, file), (err) => err instanceof Refused && words.test(err.message) && err.message.endsWith('.'));
  }
});

test('reports missing SIMD support if the module does not compile', async () => {
  await assert.rejects(compile(new Uint8Array([1, 2, 3])), (err) => err instanceof Refused && /SIMD/.test(err.message));
});

test('joins byte planes', () => {
  const planes = new Uint8Array(96 + 6);
  new DataView(planes.buffer).setUint32(12, 1, true); // float16
  planes.set([1, 2, 3, 11, 12, 13], 96);
  assert.deepEqual([...new Uint8Array(joined(planes.buffer)).slice(96)], [1, 11, 2, 12, 3, 13]);
});

test('noise has the requested power', () => {
  let seed = 1;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const z = Float32Array.from({ length: 20000 }, (_, i) => (i % 2 ? 3 : -3));
  const noise = noisy(z, 10, random).map((v, i) => v - z[i]);
  const power = noise.reduce((sum, v) => sum + v * v, 0) / noise.length;
  assert.ok(Math.abs(power / 0.9 - 1) < 0.05, `power ${power}, want 0.9`);
});
