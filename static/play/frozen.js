// A frozen page: the playground without a server. Implements the interface of server.js with the data in the file.
//
// frozen is {models: [{key, usage, examples, sheet, probe}], blob(name)}: sheet is an image of all examples [{index, classes, codes}] side by
// side; blob returns the bytes of the module and of a model's weights.

import { query } from './address.js';
import { natural, parse, writer } from './codes.js';
import { GRID } from './codec.js';
import { applied, changed, load, save } from './kept.js';
import { Local } from './local.js';
import { pixelsOf, psnr } from './pixels.js';
import { Probe } from './probe.js';

const LARGEST = 8192; // maximum width and height of an upload in pixels
const MARK = GRID.steps / 4; // codes per palette entry, for real numbers

export class Frozen {
  remote = null;
  #originals = new Map(); // data URLs of examples
  #leaf = null; // the atlas, once opened
  #opened = location.hash; // before the state replaces it

  /** open loads the model with the key of data. */
  static async open(data, frozen) {
    const model = frozen.models.find(({ key }) => key === data.key);
    return new Frozen(data, frozen, model, await loaded(model.sheet));
  }

  constructor(data, frozen, model, sheet) {
    Object.assign(this, { data, model, sheet, blob: frozen.blob, models: frozen.models });
    this.text = writer(data);
    this.local = Promise.all([frozen.blob('codec.wasm'), frozen.blob(`${data.key}.weights`)]).then(([wasm, planes]) => Local.open({ wasm, weights: joined(planes) }));
  }

  /** restore returns data with the state in the page's URL, if there is one. */
  static restore(data, hash) {
    const q = new URLSearchParams(hash.split('?')[1] ?? '');
    const refused = {}; // side → which part of the URL was ignored, and why
    const codesOf = (name, key) => {
      const codes = parse(q.get(key) ?? '', data.m, data.k);
      if (q.has(key) && !codes) refused[name] = `The link must have ${data.m} codes in 0–${data.k - 1} for ${name.toUpperCase()}. Showing ${name.toUpperCase()} as encoded.`;
      return codes;
    };
    const { examples } = globalThis.frozen.models.find(({ key }) => key === data.key);
    const example = (name) => examples.find((e) => e.index === Number(q.get(name) ?? data[name].index));
    const side = (name) => {
      const e = example(name);
      if (!e && q.has(name)) refused[name] = `Image ${q.get(name)} is not in this file; showing another.`;
      return e ? { ...data[name], index: e.index, classes: e.classes, codes: e.codes, psnr: e.psnr, original: `example:${e.index}` } : data[name];
    };
    const [a, b] = [side('a'), side('b')];
    const order = parse(q.get('order') ?? '', data.m, data.m);
    return {
      ...data, ...applied(data, load(data.key)), a, b, codes: codesOf('a', 'codes') ?? a.codes, bcodes: codesOf('b', 'bcodes') ?? b.codes, refused,
      order: order && new Set(order).size === data.m ? order : natural(data.m),
    };
  }

  address(state) { return `#${this.data.key}?${query(state)}`; }
  choose(key) {
    location.hash = key;
    location.reload();
  }

  /** probe returns the dataset's factor probe; null if the file has none. */
  async probe() { return this.model.probe ? new Probe(await this.blob(this.model.probe)) : null; }

  /** truth returns the example with these classes, or null if the file does not have it. */
  async truth(classes) {
    const found = this.model.examples.findIndex((e) => classes.every((c, f) => c === e.classes[f]));
    return found < 0 ? null : { index: this.model.examples[found].index, pixels: pixelsOf(this.#picture(found), this.data) };
  }

  /** other returns another model of the file with examples a and b, by index. */
  async other(key, a, b) {
    const model = this.models.find((m) => m.key === key);
    this.#others[key] ??= Promise.all([this.blob('codec.wasm'), this.blob(`${key}.weights`)]).then(([wasm, planes]) => Local.open({ wasm, weights: joined(planes) }));
    const local = await this.#others[key];
    const side = (index) => {
      const found = model.examples.find((e) => e.index === index);
      if (!found) throw new Error(`This file does not have image ${index} for the other model.`);
      return { codes: found.codes, psnr: found.psnr };
    };
    const { slots, groups } = model.data;
    return { key, title: model.title.replace('Slotscope: ', ''), a: side(a), b: side(b), slots, groups, decode: (tuples) => local.decode('strip', tuples.map((t) => ({ a: t }))) };
  }

  #others = {}; // key → a promise of its Local

  /** attach opens the atlas when the URL points into it, and shows which parts of the URL were ignored. */
  attach(app) {
    for (const [side, why] of Object.entries(this.data.refused)) app.sides[side].say(why);
    addEventListener('hashchange', (e) => this.#follow(app, new URL(e.newURL).hash)); // location.hash may already be a saved state's again
    this.#follow(app, this.#opened);
  }

  /** download creates the files of the page's download links. */
  download(app) {
    document.addEventListener('click', async (e) => {
      const link = e.target.closest('#download [data-file], #many .files [data-format]');
      if (!link) return;
      e.preventDefault();
      const { save } = await import('./files.js');
      save(link.dataset.file ?? `figure.${link.dataset.format}`, app).then(() => app.fail(''), (err) => app.fail(err.message));
    });
  }

  /** follow opens the atlas if the hash points into it, and closes it otherwise. */
  async #follow(app, hash) {
    const place = this.#place(hash);
    if (!place && !this.#leaf) return;
    if (place) history.replaceState(history.state, '', hash);
    this.#leaf ??= new (await import('./leaf.js')).Leaf(app, this.model);
    this.#leaf.show(place);
  }

  #place(hash) {
    const [, key, slot, code] = /^#([^?/]+)\/atlas\/(\d+)(?:\/(\d+))?$/.exec(hash) ?? [];
    if (key !== this.data.key) return null;
    const { m, k } = this.data;
    if (Number(slot) >= m) return { refused: `Slot ${slot} does not exist; this model has slots 0–${m - 1}.` };
    if (Number(code) >= k) return { refused: `Code ${code} does not exist; this model has codes 0–${k - 1}.` };
    return { slot: Number(slot), code: code === undefined ? undefined : this.entry(Number(code)) };
  }

  /** entry returns the code of the palette entry nearest to a code. */
  entry(code) { return this.data.real ? Math.floor((code + MARK / 2) / MARK) * MARK : code; }

  atlas(slot, code) { return `#${this.data.key}/atlas/${slot}${code === undefined ? '' : `/${this.entry(code)}`}`; }
  picture() { return '#'; }
  file() { return '#'; }

  /** encode returns the same as the server's; random chooses an example other than the one shown. */
  async encode(what, _signal, shown) {
    if (what instanceof Blob) return this.#upload(what);
    const { examples } = this.model;
    if (what.random) {
      const others = examples.filter((e) => e.index !== Number(shown));
      return this.#example(others[Math.floor(Math.random() * others.length)]);
    }
    if (what.classes) return this.#nearest(what.classes);
    const found = examples.find((e) => e.index === what.index);
    if (!found) throw new Error(`Image ${what.index} is not in this file. It has ${examples.length} images, such as ${examples.slice(0, 3).map((e) => e.index).join(', ')}.`);
    return this.#example(found);
  }

  /** nearest returns the example with the most classes in common. */
  #nearest(classes) {
    const shared = (e) => e.classes.filter((c, f) => c === classes[f]).length;
    const best = this.model.examples.reduce((a, b) => (shared(b) > shared(a) ? b : a));
    const all = shared(best) === classes.length;
    return { ...this.#example(best), said: all ? '' : `This file has only ${this.model.examples.length} images; showing the nearest.` };
  }

  #example(e) { return { ...e, original: `example:${e.index}` }; }

  /** original returns the data URL of a side's original. */
  original(name) {
    const at = this.model.examples.findIndex((e) => name === `example:${e.index}`);
    if (at < 0) return '';
    if (!this.#originals.has(name)) this.#originals.set(name, this.#picture(at).toDataURL());
    return this.#originals.get(name);
  }

  /** picture crops an example from the sheet. */
  #picture(at) {
    const { h, w } = this.data;
    const canvas = Object.assign(document.createElement('canvas'), { width: w, height: h });
    canvas.getContext('2d').drawImage(this.sheet, at * w, 0, w, h, 0, 0, w, h);
    return canvas;
  }

  /** images returns n of the file's examples, different for each seed, in steps of 7, which is coprime to 64. */
  async images(n, seed) {
    const { examples } = this.model;
    return Array.from({ length: Math.min(n, examples.length) }, (_, i) => this.#example(examples[(7 * (seed * n + i)) % examples.length]));
  }

  /** upload encodes the centre square of a file. */
  async #upload(file) {
    const { h, w } = this.data;
    const image = await createImageBitmap(file, { imageOrientation: 'from-image' }).catch(() => null);
    if (!image) throw new Error('Unsupported format. Use JPEG, PNG, GIF or WebP.');
    if (Math.max(image.width, image.height) > LARGEST) throw new Error(`The image is ${image.width} × ${image.height} pixels; choose one of at most ${LARGEST.toLocaleString('en')} pixels on each side.`);
    const side = Math.min(image.width, image.height);
    const canvas = Object.assign(document.createElement('canvas'), { width: w, height: h });
    const ctx = canvas.getContext('2d', { willReadFrequently: true });
    ctx.fillStyle = 'white';
    ctx.fillRect(0, 0, w, h);
    ctx.imageSmoothingQuality = 'high';
    ctx.drawImage(image, (image.width - side) / 2, (image.height - side) / 2, side, side, 0, 0, w, h);
    const pixels = this.#channels(ctx.getImageData(0, 0, w, h).data);
    const local = await this.local;
    const { codes } = await local.encode(pixels);
    return { index: -1, codes, psnr: psnr(pixels, await local.one(codes)), original: canvas.toDataURL(), said: `Cropped ${image.width} × ${image.height} to the centre square and resized to ${w} × ${h}.` };
  }

  /** channels converts RGBA to three channels, or to one of luma. */
  #channels(rgba) {
    const { h, w, c } = this.data;
    const out = new Uint8Array(h * w * c);
    for (let p = 0; p < h * w; p++) {
      const [r, g, b] = rgba.subarray(4 * p, 4 * p + 3);
      if (c === 1) out[p] = Math.round(0.299 * r + 0.587 * g + 0.114 * b);
      else out.set([r, g, b], 3 * p);
    }
    return out;
  }

  /** rename saves a name or a pin in this browser and returns the updated {slots, groups}. */
  async rename(change) {
    const names = changed(load(this.data.key), change);
    save(this.data.key, names);
    Object.assign(this.data, applied(this.model.data, names));
    return this.data;
  }

  async check(codes) {
    const local = await this.local;
    const again = (await local.encode(await local.one(codes))).codes;
    const near = this.data.real ? MARK : 0;
    const moved = natural(codes.length).filter((i) => Math.abs(again[i] - codes[i]) > near);
    return { codes, again, kept: codes.length - moved.length, moved };
  }

  async usage() {
    if (this.model.usage) return { state: 'ready', usage: this.model.usage };
    throw new Error('This file has no code counts.');
  }

  /** palette returns the entries of a slot, like the server. */
  async palette({ codes, slot, sort, filter, search, offset, limit }) {
    const counts = this.model.usage?.counts[slot];
    const distances = sort === 'distance' ? await (await this.local).distances(slot, codes[slot], this.#entries()) : null;
    const known = new Map(this.data.slots[slot].codes.map((c) => [c.code, c]));
    const { pins } = this.data.slots[slot];
    const place = (code) => (pins.includes(code) ? pins.indexOf(code) : Infinity);
    let all = this.#entries().map((code, at) => ({ code, at, text: this.text(code), name: known.get(code)?.name, told: known.get(code)?.told, class: Math.min(Infinity, ...(known.get(code)?.classes ?? [])), pin: place(code), pinned: pins.includes(code), count: counts?.[at] ?? 0, unseen: !!counts && !counts[at], distance: distances?.[at] }));
    if (this.data.real) {
      const used = (e) => (counts ? e.count > 0 : Math.abs((e.code - GRID.zero) / GRID.steps) <= 3);
      const from = all.findIndex(used), to = all.findLastIndex(used);
      all = all.filter((e, at) => e.pinned || (at >= from && at <= to));
    }
    all = all.filter((e) => e.pinned || filter === 'all' || (filter === 'used' ? !e.unseen : !counts || e.unseen));
    const wanted = (search ?? '').toLowerCase();
    all = all.filter((e) => !wanted || e.text === wanted || e.name?.toLowerCase().includes(wanted) || e.told?.toLowerCase().includes(wanted));
    if (sort === 'value') all.sort((x, y) => (x.class === y.class ? 0 : x.class - y.class) || y.count - x.count);
    if (sort === 'distance') all.sort((x, y) => x.distance - y.distance);
    if (sort === 'usage') all.sort((x, y) => y.count - x.count);
    all.sort((x, y) => (x.pin === y.pin ? 0 : x.pin - y.pin));
    return { slot, images: this.model.usage?.images ?? 0, total: all.length, entries: all.slice(offset, offset + limit) };
  }

  #entries() {
    const step = this.data.real ? MARK : 1;
    return Array.from({ length: Math.ceil(this.data.k / step) }, (_, at) => at * step);
  }
}

/** joined restores a weights file whose numbers a frozen page stores in byte planes: all first bytes, then all second bytes … */
export function joined(planes) {
  const HEADER = 96;
  const from = new Uint8Array(planes);
  const size = new DataView(planes).getUint32(12, true) === 1 ? 2 : 4;
  const out = new Uint8Array(from.length);
  out.set(from.subarray(0, HEADER));
  const count = (from.length - HEADER) / size;
  for (let b = 0, at = HEADER; b < size; b++) {
    for (let i = 0; i < count; i++, at++) out[HEADER + i * size + b] = from[at];
  }
  return out.buffer;
}

async function loaded(src) {
  const image = new Image();
  image.src = src;
  await image.decode();
  return image;
}
