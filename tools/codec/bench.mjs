// Measures the speed of a model in a JavaScript engine, with weights files as sent by the server:
//
//	curl -o tiny.bin http://127.0.0.1:8080/api/play/KEY/weights.bin
//	node tools/codec/bench.mjs tiny.bin
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Codec, compile } from '../../static/play/codec.js';

const ROUNDS = 100;

const module = await compile(readFileSync(fileURLToPath(new URL('../../static/play/codec.wasm', import.meta.url))));
for (const name of process.argv.slice(2)) {
  const file = readFileSync(name);
  const codec = new Codec(module, file.buffer.slice(file.byteOffset, file.byteOffset + file.length));
  const tuple = () => Array.from({ length: codec.m }, () => (codec.real ? 960 + Math.floor(Math.random() * 128) : Math.floor(Math.random() * codec.k)));
  const image = codec.decode(tuple());
  console.log(`${name}: ${codec.w}×${codec.h}×${codec.c}, ${codec.m} slots, ${(file.length / 1e6).toFixed(2)} MB`);
  tell('decode one image', () => codec.decode(tuple()));
  tell('swaps and interpolation of a pair', () => { for (let i = 0; i < 2 * codec.m + 1; i++) codec.decode(tuple()); }, 20);
  tell('encode one image', () => codec.encode(image));
}

/** tell prints the median and the 95th percentile of some rounds, after a few warm-up rounds for the compiler. */
function tell(what, work, rounds = ROUNDS) {
  const times = [];
  for (let i = -5; i < rounds; i++) {
    const start = performance.now();
    work();
    if (i >= 0) times.push(performance.now() - start);
  }
  times.sort((a, b) => a - b);
  const at = (part) => times[Math.min(rounds - 1, Math.floor(part * rounds))].toFixed(2);
  console.log(`  ${what}: median ${at(0.5)} ms, 95th percentile ${at(0.95)} ms`);
}
