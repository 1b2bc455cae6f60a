// Decoding in this browser: by workers with the model's weights, and by the page itself if that is fast enough to finish within a frame. If
// workers are unavailable, the page decodes everything.

import { Codec, Refused, compile } from './codec.js';
import { hand, idle } from './turns.js';

export const SLOWEST = 30; // ms per image; above it the server is faster
const QUICK = 8; // ms per image; up to it the page itself decodes the dragged image, which then appears in the same frame
const TABLE = 40; // ms; the page itself decodes a table of swaps that takes up to this long, because a worker's reply would miss the frame

export class Local {
  #workers = [];
  #codec = null; // the model in the page
  #asked = new Map(); // seq → {resolve, reject}
  #seq = 0;
  #model = null; // {module, weights} for workers and the page
  #assisted = null;
  #readers = []; // workers that have the probe
  #ones = 0; // counts lanes of one()

  /** open takes the bytes of the module and the weights. It resolves once the model can decode, or rejects with an error to show. */
  static async open({ wasm, weights }) {
    const local = new Local();
    const model = { module: await compile(wasm), weights }; // compiled once, so that all share optimized code
    try {
      local.picture = await local.#start(model);
    } catch (err) {
      if (err instanceof Refused) throw err;
      local.#hold(model);
      const start = performance.now();
      local.#codec.decode(new Array(local.#codec.m).fill(local.#codec.real ? 1024 : 0));
      local.picture = performance.now() - start;
    }
    local.#model = model;
    return local;
  }

  /** start adds a worker and resolves to its milliseconds per image. */
  async #start(model) {
    const worker = new Worker(import.meta.resolve('./worker.js'), { type: 'module' });
    try {
      const picture = await new Promise((resolve, reject) => {
        worker.onerror = () => reject(new Error('The worker did not start.'));
        worker.onmessage = ({ data }) => (data.ready ? resolve(data.ready.picture) : reject(new Refused(data.refused)));
        worker.postMessage({ open: { script: import.meta.resolve('./codec.js'), ...model, slowest: SLOWEST } });
      });
      worker.onerror = () => this.#fail('Decoding in this browser stopped.');
      worker.onmessage = ({ data }) => this.#settle(data);
      this.#workers.push(worker);
      return picture;
    } catch (err) {
      worker.terminate();
      throw err;
    }
  }

  #hold({ module, weights }) { this.#codec = new Codec(module, weights); }

  /** assist adds a worker if there is a processor for it, and, once the user interacts, the page itself if it is fast enough. */
  assist() { this.#assisted ??= this.#assist(); }

  async #assist() {
    if (!this.#workers.length) return;
    if (this.picture <= QUICK) hand.then(idle).then(() => this.#hold(this.#model));
    if (navigator.hardwareConcurrency > 1) await this.#start(this.#model).catch(() => {});
  }

  /** decode returns the images of jobs: {a} for a tuple, {a, b, t} for a blend of two. A lane's newest request wins. */
  async decode(lane, jobs, signal) {
    signal?.throwIfAborted();
    if (this.#here(lane, jobs)) return jobs.map(({ a, b, t }) => (t ? this.#codec.blend(a, b, t) : this.#codec.decode(a)));
    return this.#share([...this.#workers], lane, jobs, signal);
  }

  /** one returns the image of a tuple. It does not replace other requests. */
  async one(codes) {
    if (this.#codec) return this.#codec.decode(codes);
    const [pixels] = await this.#share([this.#workers[0]], `one ${++this.#ones}`, [{ a: codes }]);
    return pixels;
  }

  /** here reports whether the page itself decodes: a single dragged image, and a table of swaps that is fast enough. */
  #here(lane, jobs) {
    if (!this.#codec || !this.#workers.length) return !!this.#codec;
    return lane === 'strip' ? jobs.length * this.picture <= TABLE : lane === 'held' && jobs.length === 1;
  }

  /** teach sends the probe's file to the workers and resolves to whether any can read. */
  async teach(file) {
    await this.#assisted;
    const script = import.meta.resolve('./probe.js');
    this.#readers = (await Promise.all(this.#workers.map((w) => this.#ask(w, { probe: { script, file } }).then(() => w, () => [])))).flat();
    return this.#readers.length > 0;
  }

  /** read returns the classes that the probe reads from images. */
  async read(lane, pictures, signal) {
    signal?.throwIfAborted();
    return this.#share(this.#readers, lane, pictures.map((read) => ({ read })), signal);
  }

  /** share distributes jobs over workers. Each gets a message even if its part is empty, which ends the lane's older request. */
  async #share(workers, lane, jobs, signal) {
    const parts = await Promise.all(workers.map((worker, n) => {
      const part = jobs.filter((_, j) => j % workers.length === n);
      if (part.length) return this.#ask(worker, { lane, jobs: part }, signal);
      worker.postMessage({ lane, jobs: part });
      return null;
    }));
    return jobs.map((_, j) => parts[j % workers.length].done[Math.floor(j / workers.length)]);
  }

  /** encode returns {codes, z} of an image's pixels. */
  async encode(pixels) { return this.#codec ? this.#codec.encode(pixels) : this.#ask(this.#workers[0], { encode: pixels }); }

  /** represent returns the codes of z. */
  async represent(z) { return this.#codec ? this.#codec.represent(z) : (await this.#ask(this.#workers[0], { represent: z })).codes; }

  /** distances returns the distances of a slot's entries to that of a code, for sorting the palette. */
  async distances(slot, code, entries) {
    return this.#codec ? this.#codec.distances(slot, code, entries) : (await this.#ask(this.#workers[0], { distances: { slot, code, entries } })).distances;
  }

  #ask(worker, message, signal) {
    const seq = ++this.#seq;
    return new Promise((resolve, reject) => {
      this.#asked.set(seq, { resolve, reject });
      signal?.addEventListener('abort', () => { this.#asked.delete(seq); reject(signal.reason); }, { once: true });
      worker.postMessage({ seq, ...message });
    });
  }

  #settle({ seq, error, ...reply }) {
    const asked = this.#asked.get(seq);
    this.#asked.delete(seq);
    if (error) asked?.reject(new Error(error));
    else asked?.resolve(reply);
  }

  close() { for (const worker of this.#workers) worker.terminate(); }

  #fail(text) {
    for (const asked of this.#asked.values()) asked.reject(new Error(text));
    this.#asked.clear();
  }
}
