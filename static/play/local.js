// Decoding in this browser: workers with the model's weights; the page itself, where that is quick enough for the frame of a move; or where
// there can be no worker, the page alone.

import { Codec, Refused, compile } from './codec.js';
import { hand, idle } from './turns.js';

export const SLOWEST = 30; // ms per picture: above it the server's pictures are quicker to wait for
const QUICK = 8; // ms per picture: below it the page decodes the picture under the hand, which is then on the screen with the same frame
const TABLE = 40; // ms: the page decodes a table of swaps that takes no longer; a worker's reply would miss the frame that shows the edit

export class Local {
  #workers = [];
  #codec = null; // the model in the page
  #asked = new Map(); // seq → {resolve, reject}
  #seq = 0;
  #model = null; // what workers and the page open
  #assisted = null;
  #readers = []; // workers that have the probe

  /** open resolves once the model can decode, or rejects with a sentence; bytes are the module's and the weights'. */
  static async open({ wasm, weights }) {
    const local = new Local();
    const model = { module: await compile(wasm), weights }; // compiled once: what one of them runs often is made faster in all
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

  /** start adds a worker, and resolves to its milliseconds per picture. */
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

  /** assist adds a worker where there is a processor for it; and the page itself where that is quick, once somebody uses it. */
  assist() { this.#assisted ??= this.#assist(); }

  async #assist() {
    if (!this.#workers.length) return;
    if (this.picture <= QUICK) hand.then(idle).then(() => this.#hold(this.#model));
    if (navigator.hardwareConcurrency > 1) await this.#start(this.#model).catch(() => {});
  }

  /** decode gives the pictures of jobs: {a} for a tuple, {a, b, t} for what lies between two. A lane's newest request wins. */
  async decode(lane, jobs, signal) {
    signal?.throwIfAborted();
    if (this.#here(lane, jobs)) return jobs.map(({ a, b, t }) => (t ? this.#codec.blend(a, b, t) : this.#codec.decode(a)));
    return this.#share([...this.#workers], lane, jobs, signal);
  }

  /** here says whether the page itself decodes: the picture under the hand and the table of swaps, where they are soon done. */
  #here(lane, jobs) {
    if (!this.#codec || !this.#workers.length) return !!this.#codec;
    return lane === 'strip' ? jobs.length * this.picture <= TABLE : lane === 'held' && jobs.length === 1;
  }

  /** teach gives the workers the probe's file, and resolves to whether they can read. */
  async teach(file) {
    await this.#assisted;
    const script = import.meta.resolve('./probe.js');
    this.#readers = (await Promise.all(this.#workers.map((w) => this.#ask(w, { probe: { script, file } }).then(() => w, () => [])))).flat();
    return this.#readers.length > 0;
  }

  /** read gives the classes that the probe reads from pictures. */
  async read(lane, pictures, signal) {
    signal?.throwIfAborted();
    return this.#share(this.#readers, lane, pictures.map((read) => ({ read })), signal);
  }

  /** share deals jobs out to workers, each its part, though it be empty: a lane's older request ends in all of them. */
  async #share(workers, lane, jobs, signal) {
    const parts = await Promise.all(workers.map((worker, n) => {
      const part = jobs.filter((_, j) => j % workers.length === n);
      if (part.length) return this.#ask(worker, { lane, jobs: part }, signal);
      worker.postMessage({ lane, jobs: part });
      return null;
    }));
    return jobs.map((_, j) => parts[j % workers.length].done[Math.floor(j / workers.length)]);
  }

  /** encode gives {codes, z} of a picture's pixels. */
  async encode(pixels) { return this.#codec ? this.#codec.encode(pixels) : this.#ask(this.#workers[0], { encode: pixels }); }

  /** represent gives the codes that are read from z. */
  async represent(z) { return this.#codec ? this.#codec.represent(z) : (await this.#ask(this.#workers[0], { represent: z })).codes; }

  /** distances are those of a slot's entries to the one of a code, as the palette sorts them. */
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
