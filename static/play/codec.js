// A model in the browser: decodes codes to images and encodes images to codes, with the WebAssembly module codec.wasm (tools/codec/codec.c).
// It does not need a page, so workers, pages and tests can use it.

/** Messages for the module's error codes when it cannot open a weights file. */
const REFUSALS = [
  '', 'The weights file is too short; the download is incomplete. Reload the page.',
  'This is not a weights file of this version of Slotscope.',
  'The weights file is damaged: its checksum does not match. Reload the page.',
  'The weights file describes an unknown model.',
  'The weights file has the wrong length for its model. Reload the page.',
  'This model needs more memory than the browser allows.',
  'The weights file binds slots to components that do not exist.',
];

export class Refused extends Error {}

const [Z, SLOTS, , CODES, IMAGE, CODEBOOK, ROW] = [0, 1, 2, 3, 4, 5, 6]; // arguments of the module's at()
const [QLAE, VAE] = [2, 3]; // latents of the file’s header; 0 is HRR, 1 VQ-VAE

export const GRID = { zero: 1024, steps: 64, codes: 2049 }; // a VAE's code c represents (c − zero)/steps

/** compile compiles the module's bytes; it throws Refused if the browser does not support WebAssembly SIMD. */
export async function compile(bytes) {
  if (typeof WebAssembly !== 'object') throw new Refused('This browser does not support WebAssembly.');
  try {
    return await WebAssembly.compile(bytes);
  } catch {
    throw new Refused('This browser does not support WebAssembly SIMD.');
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
    if (answer) throw new Refused(REFUSALS[answer] ?? 'Cannot read the weights file.');
    const head = new DataView(file);
    const number = (offset) => head.getUint32(offset, true);
    this.latent = number(16);
    Object.assign(this, { h: number(28), w: number(32), c: number(36), m: number(60), d: number(68), n: number(72) });
    this.real = this.latent === VAE;
    this.k = this.real ? GRID.codes : number(64);
    this.row = this.#run.at(ROW); // stride between slot values, in numbers
  }

  // The module's memory grows only while a file is opened, so views stay valid afterwards.
  #floats(which, count) { return new Float32Array(this.#run.memory.buffer, this.#run.at(which), count); }
  #codes() { return new Int32Array(this.#run.memory.buffer, this.#run.at(CODES), this.m); }
  #image() { return new Uint8Array(this.#run.memory.buffer, this.#run.at(IMAGE), this.h * this.w * this.c); }

  #take(codes) {
    if (codes.length !== this.m) throw new RangeError(`Got ${codes.length} codes; this model has ${this.m} slots.`);
    this.#codes().set(codes);
    const bad = this.#run.take();
    if (bad) throw new RangeError(`Slot ${bad - 1}: code ${codes[bad - 1]} does not exist; this model has codes 0–${this.k - 1}.`);
  }

  #draw() {
    this.#run.draw();
    return this.#image().slice();
  }

  /** decode returns the pixels of a tuple, Uint8Array of h · w · c. */
  decode(codes) {
    this.#take(codes);
    return this.#draw();
  }

  /** blend decodes an interpolation of two tuples: slot i has the value (1 − t_i)·a_i + t_i·b_i. */
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

  /** encode returns the codes of an image, and z, Float32Array of n. */
  encode(pixels) {
    this.#image().set(pixels);
    this.#run.see();
    const z = this.#floats(Z, this.n).slice();
    this.#run.represent();
    return { codes: [...this.#codes()], z };
  }

  /** represent returns the codes of z. */
  represent(z) {
    this.#floats(Z, this.n).set(z);
    this.#run.represent();
    return [...this.#codes()];
  }

  /** distances returns the Euclidean distances of a slot's entries to that of a code, relative to their mean over the other entries. */
  distances(slot, code, entries) {
    const from = this.value(slot, code);
    const all = entries.map((e) => Math.hypot(...this.value(slot, e).map((v, i) => v - from[i])));
    const mean = all.reduce((sum, d) => sum + d, 0) / Math.max(1, all.length - 1);
    return all.map((d) => (mean > 0 ? d / mean : 0));
  }

  /** value returns the value of a slot's code: a codebook entry, or one number. */
  value(slot, code) {
    if (this.real) return [(code - GRID.zero) / GRID.steps];
    if (this.latent === QLAE) return [this.#floats(CODEBOOK, this.m * this.k)[slot * this.k + code]];
    const at = code * this.row;
    return this.#floats(CODEBOOK, this.k * this.row).subarray(at, at + this.d);
  }
}

/** noisy adds Gaussian noise to z, with a per-component signal-to-noise ratio in dB; random returns numbers in [0, 1). */
export function noisy(z, snr, random = Math.random) {
  const power = z.reduce((sum, v) => sum + v * v, 0) / z.length;
  const deviation = Math.sqrt(power / 10 ** (snr / 10));
  return Float32Array.from(z, (v) => v + deviation * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()));
}
