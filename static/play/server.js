// Where the page's answers come from: the server. frozen.js answers the same questions without one.

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

  /** The page's address for a state, and those of what can be downloaded. */
  address(state) { return `/play/${this.data.key}?${query(state)}`; }
  choose() { document.getElementById('choose').requestSubmit(); }
  original(name) { return name?.startsWith('upload:') ? '' : name; }
  atlas(slot, code) { return `/play/${this.data.key}/atlas/${slot}/${code}`; }
  picture(codes) { return `/img/${this.data.key}/${format(codes)}.png`; }
  file(name, state) { return `/api/play/${this.data.key}/${name}?${query(state)}`; }

  /** encode answers {index, classes, codes, psnr, original, said} of {index}, {classes}, {random} or a File. */
  encode(what, signal) {
    const file = what instanceof Blob;
    return this.#ask('encode', signal, {
      method: 'POST', body: file ? what : JSON.stringify(what),
      headers: { 'Content-Type': file ? what.type || 'application/octet-stream' : 'application/json' },
    });
  }

  /** probe reads factors; null where none was trained for the dataset yet. */
  async probe() {
    const reply = await fetch(`/api/play/${this.data.key}/probe.bin`);
    return reply.ok ? new Probe(await reply.arrayBuffer()) : null;
  }

  /** truth is the dataset's picture of these classes, where the dataset holds every combination. */
  async truth(classes) {
    if (!this.data.dataset?.complete) return null;
    return { pixels: await this.#pixels(`/api/play/${this.data.key}/original.png?classes=${format(classes)}`) };
  }

  /**
   * other is another checkpoint with the images of numbers a and b: {title, key, a, b, slots, groups, decode}. say hears what it waits for; without
   * the slots' names, where same is true, nothing is counted.
   */
  async other(name, a, b, same, say) {
    const pair = `a=${a}&b=${b}`;
    const ask = async (path, options) => {
      const reply = await fetch(`/api/play/${name}/${path}`, options);
      const body = await reply.json().catch(() => ({}));
      if (!reply.ok) throw new Error(body.error || `The server answered with status ${reply.status}.`);
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

  /** counted asks until the names of slots rest on all images. */
  async #counted(ask, say) {
    for (;;) {
      const reply = await ask();
      if (reply.counted.ready) return reply;
      say(`Counting which codes it uses: ${reply.counted.done.toLocaleString('en')} of ${reply.counted.of.toLocaleString('en')} images.`);
      await new Promise((done) => setTimeout(done, 500));
    }
  }

  async #pixels(src) {
    const image = new Image();
    image.src = src;
    await image.decode();
    return pixelsOf(image, this.data);
  }

  /** palette answers {slot, images, total, entries} of a slot's entries. */
  palette(q, signal) { return this.#ask(`palette?${new URLSearchParams({ ...q, codes: format(q.codes) })}`, signal); }

  /** images are n images of the dataset drawn with a seed, as encode answers them. */
  async images(n, seed, signal) { return (await this.#ask(`images?n=${n}&seed=${seed}`, signal)).images; }

  /** rename keeps a name or a pin beside the run: {slots, groups} as they are called from now on. */
  rename(change, state) {
    return this.#ask(`names?${query(state)}`, undefined, { method: 'PUT', body: JSON.stringify(change), headers: { 'Content-Type': 'application/json' } });
  }

  /** check answers which codes are preserved when their picture is encoded again: {kept, moved}. */
  check(codes, signal) { return this.#ask(`check?codes=${format(codes)}`, signal); }

  /** usage answers which codes are used, or how far the count is. */
  usage() { return this.#ask('usage'); }

  async #ask(path, signal, options = {}) {
    const reply = await fetch(`/api/play/${this.data.key}/${path}`, { signal, ...options });
    const body = await reply.json().catch(() => ({}));
    if (reply.ok) return body;
    const said = body.fields ? Object.values(body.fields).map((s) => s[0].toUpperCase() + s.slice(1)).join('. ') + '.' : body.error;
    throw new Error(said || `The server answered with status ${reply.status}.`);
  }

  /** fetchModel waits for the page to be painted, then fetches what this browser decodes with. */
  async #fetchModel() {
    await new Promise((done) => (globalThis.requestIdleCallback ?? setTimeout)(done, { timeout: 500 }));
    const [wasm, weights] = await Promise.all([bytes(import.meta.resolve('./codec.wasm')), bytes(this.data.weights)]);
    return Local.open({ wasm, weights });
  }
}

async function bytes(address) {
  const reply = await fetch(address);
  if (!reply.ok) throw new Error(`The model was not sent to this browser (status ${reply.status}), so the server decodes.`);
  return reply.arrayBuffer();
}
