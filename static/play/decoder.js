// Decodes code tuples to pixels, in this browser if it is fast enough, otherwise on the server. In each lane ("held", "strip", "palette",
// "beside", "aside") the latest request wins; an older one is rejected with Superseded.

import { format } from './codes.js';
import { SLOWEST } from './local.js';
import { hand } from './turns.js';

export class Superseded extends Error {}

const KEPT = 1500; // decoded images in the cache
const PATIENCE = 4000; // ms that the first images wait for the model in this browser

export class Decoder extends EventTarget {
  #cache = new Map();
  #lanes = new Map(); // lane → AbortController of its current request
  #local = null;

  /** Uses remote until local, a promise of a Local or null, resolves and is fast enough. remote is null in a page without a server. */
  constructor({ remote, local }) {
    super();
    Object.assign(this, { remote, took: 0, why: '' });
    this.ready = local.then((l) => this.#choose(l), (err) => this.#say(err.message));
    this.opened = Promise.race([this.ready, hand, new Promise((done) => setTimeout(done, PATIENCE))]);
    remote?.addEventListener('state', () => this.#say(this.why));
  }

  /** local is the model in this browser, or null while the server decodes. */
  get local() { return this.#local; }
  get state() { return this.#local ? 'live' : (this.remote?.state ?? 'connecting'); }

  #choose(local) {
    if (!local) return this.#say('');
    if (this.remote && local.picture > SLOWEST) {
      local.close();
      return this.#say(`This browser would take ${Math.round(local.picture)} ms per image.`);
    }
    this.#local = local;
    local.assist();
    this.#say('');
  }

  #say(why) {
    this.why = why;
    this.dispatchEvent(new Event('state'));
  }

  /** peek returns a cached image. */
  peek(codes) { return this.#cache.get(format(codes)); }

  /** decode resolves to the pixels of each tuple, Uint8Array of h · w · c. */
  async decode(lane, tuples) {
    const signal = this.#enter(lane);
    const missing = [...new Map(tuples.filter((t) => !this.peek(t)).map((t) => [format(t), t])).values()];
    const got = new Map();
    if (missing.length) {
      const started = performance.now();
      const pictures = await this.#work(lane, missing.map((a) => ({ a })), signal);
      this.took = performance.now() - started;
      missing.forEach((t, j) => { got.set(format(t), pictures[j]); this.#keep(format(t), pictures[j]); });
    }
    if (signal.aborted) throw new Superseded();
    return tuples.map((t) => this.#touch(format(t)) ?? got.get(format(t)));
  }

  /** blend resolves to the interpolation of tuples a and b, with fraction t_i of b in slot i. It needs the model in this browser. */
  async blend(lane, a, b, t) {
    const signal = this.#enter(lane);
    if (!this.#local) throw new Error('The server decodes whole codes only. Blending needs a browser with WebAssembly SIMD.');
    const [picture] = await this.#local.decode(lane, [{ a, b, t }], signal);
    if (signal.aborted) throw new Superseded();
    return picture;
  }

  /** enter replaces the lane's previous request. */
  #enter(lane) {
    this.#lanes.get(lane)?.abort(new Superseded());
    const aborts = new AbortController();
    this.#lanes.set(lane, aborts);
    return aborts.signal;
  }

  async #work(lane, jobs, signal) {
    await (this.remote ? this.opened : this.ready); // until then the page shows images rendered by the server
    if (this.#local) {
      try {
        return await this.#local.decode(lane, jobs, signal);
      } catch (err) {
        if (signal.aborted || !this.remote) throw err;
        this.#local = null;
        this.#say(err.message);
      }
    }
    if (!this.remote) throw new Error(this.why || 'This browser cannot decode images.');
    return this.remote.decode(lane, jobs, signal);
  }

  #keep(name, pixels) {
    this.#cache.set(name, pixels);
    while (this.#cache.size > KEPT) this.#cache.delete(this.#cache.keys().next().value);
  }

  #touch(name) {
    const pixels = this.#cache.get(name);
    if (pixels) { this.#cache.delete(name); this.#cache.set(name, pixels); }
    return pixels;
  }
}
