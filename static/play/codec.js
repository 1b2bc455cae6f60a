// A model in the browser: codes to pictures and pictures to codes, by the WebAssembly module codec.wasm (tools/codec/codec.c).
// It needs no page, so that a worker, a page and a test can each have one.

/** What the module answers to a file of weights that it does not open. */
const REFUSALS = [
  '', 'The weights file is too short; it was not downloaded completely. Load the page again.',
  'This is not a weights file of Slotscope, or of another version of it.',
  'The weights file is damaged: its checksum does not match. Load the page again.',
  'The weights file describes a model that does not exist.',
  'The weights file has another length than its model needs. Load the page again.',
  'This model needs more memory than the browser gives.',
  'The weights file binds slots to components that do not exist.',
];

export class Refused extends Error {}

const [Z, SLOTS, , CODES, IMAGE, CODEBOOK, ROW] = [0, 1, 2, 3, 4, 5, 6]; // what at() knows
const [QLAE, VAE] = [2, 3]; // latents of the file’s header; 0 is HRR, 1 VQ-VAE

export const GRID = { zero: 1024, steps: 64, codes: 2049 }; // a VAE's code c stands for (c − zero)/steps

/** compile makes a module of its bytes; Refused where the browser has no WebAssembly SIMD. */
export async function compile(bytes) {
  if (typeof WebAssembly !== 'object') throw new Refused('This browser has no WebAssembly.');
  try {
    return await WebAssembly.compile(bytes);
  } catch {
    throw new Refused('This browser has no WebAssembly SIMD.');
  }
}

export class Codec {
  #run;

  /** Opens a weights file, an ArrayBuffer, with a compiled module. */
  constructor(module, file) {
    this.#run = new WebAssembly.Instance(module).exports;
    const at = this.#run.alloc(file.byteLength);
    if (!at) throw new Refused(REFUSALS[6]);
    new Uint8Array(this.#run.memory.buffer).set(new Uint8Array(file), at);
    const answer = this.#run.open(at, file.byteLength);
    if (answer) throw new Refused(REFUSALS[answer] ?? 'The weights file cannot be read.');
    const head = new DataView(file);
    const number = (offset) => head.getUint32(offset, true);
    this.latent = number(16);
    Object.assign(this, { h: number(28), w: number(32), c: number(36), m: number(60), d: number(68), n: number(72) });
    this.real = this.latent === VAE;
    this.k = this.real ? GRID.codes : number(64);
    this.row = this.#run.at(ROW); // numbers from one slot's value to the next
  }

  // The module's memory may grow while a file is opened, never after: views stay good.
  #floats(which, count) { return new Float32Array(this.#run.memory.buffer, this.#run.at(which), count); }
  #codes() { return new Int32Array(this.#run.memory.buffer, this.#run.at(CODES), this.m); }
  #image() { return new Uint8Array(this.#run.memory.buffer, this.#run.at(IMAGE), this.h * this.w * this.c); }

  #take(codes) {
    if (codes.length !== this.m) throw new RangeError(`${codes.length} codes are given; this model has ${this.m} slots.`);
    this.#codes().set(codes);
    const bad = this.#run.take();
    if (bad) throw new RangeError(`Slot ${bad - 1}: code ${codes[bad - 1]} does not exist; this model has codes 0 to ${this.k - 1}.`);
  }

  #draw() {
    this.#run.draw();
    return this.#image().slice();
  }

  /** decode gives the pixels of a tuple, Uint8Array of h · w · c. */
  decode(codes) {
    this.#take(codes);
    return this.#draw();
  }

  /** blend decodes what lies between two tuples: slot i takes (1 − t_i) of a's value and t_i of b's. */
  blend(a, b, t) {
    this.#take(b);
    const slots = this.#floats(SLOTS, this.m * this.row);
    const there = slots.slice();
    this.#take(a);
    for (let i = 0, at = 0; i < this.m; i++) {
      for (let j = 0; j < this.row; j++, at++) slots[at] += t[i] * (there[at] - slots[at]);
    }
    return this.#draw();
  }

  /** encode gives the codes of a picture, and z, Float32Array of n. */
  encode(pixels) {
    this.#image().set(pixels);
    this.#run.see();
    const z = this.#floats(Z, this.n).slice();
    this.#run.represent();
    return { codes: [...this.#codes()], z };
  }

  /** represent gives the codes that are read from z. */
  represent(z) {
    this.#floats(Z, this.n).set(z);
    this.#run.represent();
    return [...this.#codes()];
  }

  /** distances are the Euclidean distances of entries of a slot to that of a code, relative to the mean of the others. */
  distances(slot, code, entries) {
    const from = this.value(slot, code);
    const all = entries.map((e) => Math.hypot(...this.value(slot, e).map((v, i) => v - from[i])));
    const mean = all.reduce((sum, d) => sum + d, 0) / Math.max(1, all.length - 1);
    return all.map((d) => (mean > 0 ? d / mean : 0));
  }

  /** value is what a code of a slot stands for: an entry of the codebook, or one number. */
  value(slot, code) {
    if (this.real) return [(code - GRID.zero) / GRID.steps];
    if (this.latent === QLAE) return [this.#floats(CODEBOOK, this.m * this.k)[slot * this.k + code]];
    const at = code * this.row;
    return this.#floats(CODEBOOK, this.k * this.row).subarray(at, at + this.d);
  }
}

/** noisy adds to z Gaussian noise of a signal-to-noise ratio in dB per component; random gives numbers from 0 to 1. */
export function noisy(z, snr, random = Math.random) {
  const power = z.reduce((sum, v) => sum + v * v, 0) / z.length;
  const deviation = Math.sqrt(power / 10 ** (snr / 10));
  return Float32Array.from(z, (v) => v + deviation * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()));
}
