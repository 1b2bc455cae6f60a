// The page's data source: the server. frozen.js implements the same interface without one.

import { query } from './address.js';
import { format } from './codes.js';
import { Local } from './local.js';
import { pixelsOf } from './pixels.js';
import { Probe } from './probe.js';
import { Remote } from './remote.js';

export class Server {
  constructor(data) {
    this.data = data;
    this.remote = new Remote(data);
    this.local = data.weights ? this.#fetchModel() : Promise.resolve(null);
  }

  /** address returns the page's URL for a state. */
  address(state) { return `/play/${this.data.key}?${query(state)}`; }
  choose() { document.getElementById('choose').requestSubmit(); }
  original(name) { return name?.startsWith('upload:') ? '' : name; }
  atlas(slot, code) { return `/play/${this.data.key}/atlas/${slot}/${code}`; }
  picture(codes) { return `/img/${this.data.key}/${format(codes)}.png`; }
  file(name, state) { return `/api/play/${this.data.key}/${name}?${query(state)}`; }

  /** encode resolves to {index, classes, codes, psnr, original, said} for {index}, {classes}, {random} or a File. */
  encode(what, signal) {
    const file = what instanceof Blob;
    return this.#ask('encode', signal, {
      method: 'POST', body: file ? what : JSON.stringify(what),
      headers: { 'Content-Type': file ? what.type || 'application/octet-stream' : 'application/json' },
    });
  }

  /** probe resolves to the dataset's factor probe, or null if none has been trained. */
  async probe() {
    const reply = await fetch(`/api/play/${this.data.key}/probe.bin`);
    return reply.ok ? new Probe(await reply.arrayBuffer()) : null;
  }

  /** truth resolves to the dataset's image of these classes, or null if the dataset does not have every combination. */
  async truth(classes) {
    if (!this.data.dataset?.complete) return null;
    return { pixels: await this.#pixels(`/api/play/${this.data.key}/original.png?classes=${format(classes)}`) };
  }

  /**
   * other resolves to another checkpoint with images a and b, by index: {title, key, a, b, slots, groups, decode}. It calls say with the
   * progress of counting. If same is true, it skips counting and omits slots and groups.
   */
  async other(name, a, b, same, say) {
    const pair = `a=${a}&b=${b}`;
    const ask = async (path, options) => {
      const reply = await fetch(`/api/play/${name}/${path}`, options);
      const body = await reply.json().catch(() => ({}));
      if (!reply.ok) throw new Error(body.error || `Request failed (status ${reply.status}).`);
      return body;
    };
    const [about, { codes, bcodes, psnr, bpsnr }] = await Promise.all([ask(''), ask(`codes.json?${pair}`)]);
    const named = same ? {} : await this.#counted(() => ask(`slots?${pair}`), say);
    return {
      key: about.checkpoint.key, title: `${about.checkpoint.title}, step ${about.checkpoint.step.toLocaleString('en')}`, a: { codes, psnr }, b: { codes: bcodes, psnr: bpsnr }, ...named,
      decode: async (tuples) => {
        const { images } = await ask('decode', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ codes: tuples }) });
        return Promise.all(images.map((src) => this.#pixels(src)));
      },
    };
  }

  /** counted polls until all images are counted. */
  async #counted(ask, say) {
    for (;;) {
      const reply = await ask();
      if (reply.counted.ready) return reply;
      say(`Counting which codes are used: ${reply.counted.done.toLocaleString('en')} of ${reply.counted.of.toLocaleString('en')} images.`);
      await new Promise((done) => setTimeout(done, 500));
    }
  }

  async #pixels(src) {
    const image = new Image();
    image.src = src;
    await image.decode();
    return pixelsOf(image, this.data);
  }

  /** palette resolves to a page of a slot's entries: {slot, images, total, entries}. */
  palette(q, signal) { return this.#ask(`palette?${new URLSearchParams({ ...q, codes: format(q.codes) })}`, signal); }

  /** images resolves to n seeded random images of the dataset, in the format of encode. */
  async images(n, seed, signal) { return (await this.#ask(`images?n=${n}&seed=${seed}`, signal)).images; }

  /** rename saves a name or a pin with the run and resolves to the updated {slots, groups}. */
  rename(change, state) {
    return this.#ask(`names?${query(state)}`, undefined, { method: 'PUT', body: JSON.stringify(change), headers: { 'Content-Type': 'application/json' } });
  }

  /** check resolves to {kept, moved}: how many codes re-encoding preserves, and which slots change. */
  check(codes, signal) { return this.#ask(`check?codes=${format(codes)}`, signal); }

  /** usage resolves to the code counts, or the progress of counting. */
  usage() { return this.#ask('usage'); }

  async #ask(path, signal, options = {}) {
    const reply = await fetch(`/api/play/${this.data.key}/${path}`, { signal, ...options });
    const body = await reply.json().catch(() => ({}));
    if (reply.ok) return body;
    const said = body.fields ? Object.values(body.fields).map((s) => s[0].toUpperCase() + s.slice(1)).join('. ') + '.' : body.error;
    throw new Error(said || `Request failed (status ${reply.status}).`);
  }

  /** fetchModel waits until the page is painted, then fetches the module and the weights. */
  async #fetchModel() {
    await new Promise((done) => (globalThis.requestIdleCallback ?? setTimeout)(done, { timeout: 500 }));
    const [wasm, weights] = await Promise.all([bytes(import.meta.resolve('./codec.wasm')), bytes(this.data.weights)]);
    return Local.open({ wasm, weights });
  }
}

async function bytes(address) {
  const reply = await fetch(address);
  if (!reply.ok) throw new Error(`Could not download the model (status ${reply.status}).`);
  return reply.arrayBuffer();
}
