// Decoding in this browser: a worker with the model's weights, or where there can be no worker, the model in the page itself.

import { Codec, Refused, compile } from './codec.js';

export const SLOWEST = 30; // ms per picture: above it the server's pictures are quicker to wait for

export class Local {
  #worker = null;
  #codec = null;
  #asked = new Map(); // seq → {resolve, reject}
  #seq = 0;

  /** open resolves once the model can decode, or rejects with a sentence; bytes are the module's and the weights'. */
  static async open({ wasm, weights }) {
    const local = new Local();
    await local.#start(wasm, weights).catch((err) => (err instanceof Refused ? Promise.reject(err) : local.#here(wasm, weights)));
    return local;
  }

  async #start(wasm, weights) {
    const worker = new Worker(import.meta.resolve('./worker.js'), { type: 'module' });
    try {
      this.picture = await new Promise((resolve, reject) => {
        worker.onerror = () => reject(new Error('The worker did not start.'));
        worker.onmessage = ({ data }) => (data.ready ? resolve(data.ready.picture) : reject(new Refused(data.refused)));
        worker.postMessage({ open: { script: import.meta.resolve('./codec.js'), wasm, weights, slowest: SLOWEST } });
      });
    } catch (err) {
      worker.terminate();
      throw err;
    }
    worker.onerror = () => this.#fail('Decoding in this browser stopped.');
    worker.onmessage = ({ data }) => this.#settle(data);
    this.#worker = worker;
  }

  async #here(wasm, weights) {
    this.#codec = new Codec(await compile(wasm), weights);
    const start = performance.now();
    this.#codec.decode(new Array(this.#codec.m).fill(this.#codec.real ? 1024 : 0));
    this.picture = performance.now() - start;
  }

  /** decode gives the pictures of jobs: {a} for a tuple, {a, b, t} for what lies between two. A lane's newest request wins. */
  async decode(lane, jobs, signal) {
    signal?.throwIfAborted();
    if (this.#codec) return jobs.map(({ a, b, t }) => (t ? this.#codec.blend(a, b, t) : this.#codec.decode(a)));
    return (await this.#ask({ lane, jobs }, signal)).pictures;
  }

  /** encode gives {codes, z} of a picture's pixels. */
  async encode(pixels) { return this.#codec ? this.#codec.encode(pixels) : this.#ask({ encode: pixels }); }

  /** represent gives the codes that are read from z. */
  async represent(z) { return this.#codec ? this.#codec.represent(z) : (await this.#ask({ represent: z })).codes; }

  /** distances are those of a slot's entries to the one of a code, as the palette sorts them. */
  async distances(slot, code, entries) {
    return this.#codec ? this.#codec.distances(slot, code, entries) : (await this.#ask({ distances: { slot, code, entries } })).distances;
  }

  #ask(message, signal) {
    const seq = ++this.#seq;
    return new Promise((resolve, reject) => {
      this.#asked.set(seq, { resolve, reject });
      signal?.addEventListener('abort', () => { this.#asked.delete(seq); reject(signal.reason); }, { once: true });
      this.#worker.postMessage({ seq, ...message });
    });
  }

  #settle({ seq, error, ...reply }) {
    const asked = this.#asked.get(seq);
    this.#asked.delete(seq);
    if (error) asked?.reject(new Error(error));
    else asked?.resolve(reply);
  }

  close() { this.#worker?.terminate(); }

  #fail(text) {
    for (const asked of this.#asked.values()) asked.reject(new Error(text));
    this.#asked.clear();
  }
}
