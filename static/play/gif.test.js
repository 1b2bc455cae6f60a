import assert from 'node:assert/strict';
import test from 'node:test';
import { animated, quantized } from './gif.js';

const noise = (n, seed = 1) => Uint8ClampedArray.from({ length: 4 * n }, (_, i) => (i % 4 === 3 ? 255 : (seed = (seed * 16807) % 2147483647) & 255));

/** unpacked decompresses LZW like a GIF decoder. */
function unpacked(data, bits) {
  const out = [];
  let table, size, before = null, held = 0, have = 0, at = 0;
  for (;;) {
    const clear = 1 << bits;
    if (!table) { table = Array.from({ length: clear }, (_, i) => [i]).concat([[], []]); size = bits + 1; before = null; }
    while (have < size) { held |= data[at++] << have; have += 8; }
    const code = held & ((1 << size) - 1);
    held >>>= size;
    have -= size;
    if (code === clear) { table = null; continue; }
    if (code === clear + 1) return out;
    const entry = table[code] ?? [...before, before[0]];
    out.push(...entry);
    if (before && table.length < 4096) table.push([...before, entry[0]]);
    if (table.length === 1 << size && size < 12) size++;
    before = entry;
  }
}

/** opened parses a GIF with frames of one size: {width, height, frames: [{delay, palette, pixels}]}. */
function opened(raw) {
  const u16 = (at) => raw[at] | (raw[at + 1] << 8);
  assert.equal(String.fromCharCode(...raw.slice(0, 6)), 'GIF89a');
  const out = { width: u16(6), height: u16(8), frames: [] };
  for (let at = 13 + 19; raw[at] !== 0x3b;) {
    const delay = u16(at + 4);
    const palette = raw.slice(at + 18, at + 18 + 768);
    const blocks = [];
    for (at += 18 + 769; raw[at]; at += 1 + raw[at]) blocks.push(...raw.slice(at + 1, at + 1 + raw[at]));
    out.frames.push({ delay, palette, pixels: unpacked(blocks, 8) });
    at++;
  }
  return out;
}

test('frames and delays survive a round trip, with LZW table resets', () => {
  const [w, h] = [90, 70];
  const few = Uint8ClampedArray.from({ length: 4 * w * h }, (_, i) => (i % 4 === 3 ? 255 : ((i >> 2) * 7) % 200));
  const { width, height, frames } = opened(animated([{ data: few, delay: 60 }, { data: noise(w * h), delay: 120 }], w, h));
  assert.deepEqual([width, height, frames.map((f) => f.delay)], [w, h, [60, 120]]);
  frames[0].pixels.forEach((index, p) => assert.equal(frames[0].palette[3 * index], few[4 * p]));
  assert.equal(frames[1].pixels.length, w * h);
  assert.deepEqual(frames[1].pixels, [...quantized(noise(w * h)).pixels]);
});

test('colours are close to the original, and exact if there are few', () => {
  const smooth = Uint8ClampedArray.from({ length: 4 * 4096 }, (_, i) => [i >> 8, i >> 10, 255 - (i >> 8), 255][i % 4]);
  for (const [data, most] of [[smooth, 6], [noise(4096), 90]]) {
    const { palette, pixels } = quantized(data);
    pixels.forEach((index, p) => { for (let ch = 0; ch < 3; ch++) assert.ok(Math.abs(palette[3 * index + ch] - data[4 * p + ch]) <= most); });
  }
});
