// What changed: the factors of an image before and after, as read by a probe; and the true image of a swap, if the dataset has it, with PSNR
// and hit.

import { format, putAll, same, swaps } from './codes.js';
import { psnr } from './pixels.js';

const TOLERANCE = 3; // dB by which a hit may fall below the reconstruction that it starts from
const KEPT = 3000; // cached probe results

/**
 * hit reports whether a swap matches the true image T. All are PSNR in dB: swap of the swap against T, reconstruction of A's reconstruction
 * against A, before of the image before the swap against T.
 */
export const hit = (swap, reconstruction, before) => swap >= reconstruction - TOLERANCE && swap > before;

/**
 * changes compares the classes read before and after, per factor: {factor, before, after, kind}. intended is the set of factors that should
 * change, or null if unknown. kind is none, intended, missed (should have changed), leaked (should not have), or other.
 */
export function changes(before, after, intended, want) {
  return before.map((b, factor) => {
    const moved = after[factor] !== b;
    const meant = intended?.has(factor);
    let kind = 'none';
    if (moved) kind = intended === null ? 'other' : meant ? 'intended' : 'leaked';
    else if (meant && want && want[factor] !== b) kind = 'missed';
    return { factor, before: b, after: after[factor], kind };
  });
}

/**
 * wanted returns the classes that edited codes should give: the image's own, except for factors of edited slots. There it is the other side's
 * class if the slot has its code, otherwise the class that the code represents. null if unknown or if slots contradict each other.
 */
export function wanted(side, other, codes, slots, names) {
  if (!side.classes?.length) return null;
  const out = side.classes.slice();
  const set = new Map();
  const rest = []; // slots without a factor
  for (let i = 0; i < codes.length; i++) {
    if (codes[i] === side.codes[i]) continue;
    const f = factorOf(slots[i]);
    if (f < 0) {
      rest.push(i);
      continue;
    }
    const to = codes[i] === other.codes[i] && other.classes?.length ? other.classes[f] : single(names.of(i, codes[i]));
    if (to === undefined || (set.has(f) && set.get(f) !== to)) return null;
    set.set(f, to);
    out[f] = to;
  }
  return rest.every((i) => codes[i] === other.codes[i] && follows(slots[i], set)) ? out : null;
}

const single = (known) => (known?.classes.length === 1 ? known.classes[0] : undefined);

/** factorOf returns the factor that a slot is named after, or −1 if none. */
export const factorOf = (slot) => (slot.known && slot.name && slot.name !== 'mixed' && slot.name !== 'unused' ? slot.first : -1);

/** follows reports whether a mixed slot belongs to one of factors, by its first factor. */
const follows = (slot, factors) => slot.known && slot.name === 'mixed' && factors.has(slot.first);

/** intends returns the factors of the changed slots; null if one of them has no factor and belongs to no other's. */
export function intends(slots, changed) {
  const factors = new Set(changed.map((i) => factorOf(slots[i])).filter((f) => f >= 0));
  return changed.every((i) => factorOf(slots[i]) >= 0 || follows(slots[i], factors)) ? factors : null;
}

export class Facts {
  #probe = null;
  #read = new Map();
  #truths = new Map();
  #lanes = 0; // counts lanes of readings that must not supersede each other
  #workers = null; // promise: whether workers can read
  #refreshing = new AbortController(); // of the newest refresh; older ones are aborted

  constructor(app, shape) {
    Object.assign(this, { app, shape, factors: app.data.dataset?.factors ?? [] });
    this.table = document.getElementById('reading');
    this.should = document.getElementById('should');
    this.ready = this.factors.length ? app.decoder.opened.then(() => app.store.probe()).then((p) => { this.#probe = p; }, () => {}) : Promise.resolve();
  }

  /** classes reads the classes of tuples' images in a world, where they must be cached; null without a probe. A lane's newest request wins. */
  async #classes(world, tuples, lane = `reading ${++this.#lanes}`, signal = undefined) {
    await this.ready;
    const name = (codes) => `${world.key ?? ''} ${format(codes)}`;
    const missing = new Map(tuples.filter((t) => this.#probe && !this.#read.has(name(t))).map((t) => [name(t), world.decoder.peek(t)]).filter(([, pixels]) => pixels));
    const found = await this.#readAll([...missing.values()], lane, signal);
    [...missing.keys()].forEach((key, j) => this.#read.set(key, found[j]));
    const classes = tuples.map((t) => this.#read.get(name(t)) ?? null);
    while (this.#read.size > KEPT) this.#read.delete(this.#read.keys().next().value);
    return classes;
  }

  /** readAll reads images in the workers of the page's model, or without workers one by one in the page. */
  async #readAll(pictures, lane, signal) {
    if (!pictures.length) return [];
    const { local } = this.app.decoder;
    this.#workers ??= local?.teach(this.#probe.file);
    if (local && (await this.#workers)) {
      const read = await local.read(lane, pictures.map((p) => p.slice()), signal).catch(() => null); // slice: some are views of a larger buffer
      if (read) return read;
    }
    const found = [];
    for (const pixels of pictures) {
      await new Promise((done) => setTimeout(done)); // let user input run first
      signal?.throwIfAborted();
      found.push(this.#probe.read(pixels));
    }
    return found;
  }

  /** truth resolves to the dataset's image of classes, {pixels}, or null. */
  #truth(classes) {
    const name = classes.join('.');
    if (!this.#truths.has(name)) this.#truths.set(name, this.app.store.truth(classes).catch(() => null));
    return this.#truths.get(name);
  }

  /**
   * of returns the effect of changing a side's codes from one tuple to another: {changes, want, truth: {pixels, psnr, hit}}; unknown parts
   * are null. world is the model: {key, decoder: {peek(codes)}, slots, names}, by default the page's; asked is whether to look up truth.
   */
  async of(side, other, from, to, world = this.app, asked = true) {
    const { decoder, slots, names } = world;
    const changed = to.flatMap((c, i) => (c === from[i] ? [] : [i]));
    const [before, after] = await this.#classes(world, [from, to]);
    const want = wanted(side, other, to, slots, names);
    const out = { changes: before && after ? changes(before, after, intends(slots, changed), want) : null, want, truth: null };
    const [old, now, base] = [from, to, side.codes].map((codes) => decoder.peek(codes));
    if (!asked || !want || !changed.length || !old || !now || !base || !side.psnr || same(want, side.classes)) return out; // an edit that should change nothing cannot get closer
    const truth = await this.#truth(want);
    if (!truth) return out;
    const reached = psnr(now, truth.pixels);
    out.truth = { ...truth, psnr: reached, hit: hit(reached, side.psnr, psnr(old, truth.pixels)) };
    return out;
  }

  #value(f, c) { return this.factors[f].values[c]; }

  /** result shows the changes of the enlarged image. */
  async result(row, codes) {
    const { state } = this.app;
    const [side, other] = row === 'b' ? [state.b, state.a] : [state.a, state.b];
    const run = (this.shown = {});
    const found = await this.of(side, other, side.codes, codes);
    if (this.shown !== run) return;
    this.#writeReading(found, side);
    this.#writeTruth(found.truth, row);
  }

  #written = ''; // what the table shows

  #writeReading({ changes: list, want }, side) {
    this.table.hidden = !list;
    const now = JSON.stringify([list, want, side.classes]);
    if (!list || now === this.#written) return;
    this.#written = now;
    this.table.tBodies[0].replaceChildren(...list.map(({ factor, before, after, kind }) => {
      const tr = document.createElement('tr');
      tr.dataset.kind = kind;
      const cell = (tag, text, name) => Object.assign(document.createElement(tag), { textContent: text, className: name ?? '' });
      const [was, is] = [this.#value(factor, before), this.#value(factor, after)];
      const real = side.classes?.length ? this.#value(factor, (want ?? side.classes)[factor]) : '';
      const mark = MARKS[kind];
      tr.title = `${this.factors[factor].name}: ${before === after ? `${is}, unchanged` : `${was} → ${is}, ${mark.text}`} (read by the probe)` + (real ? `; true: ${real}` : '');
      const read = before !== after ? `${was} → ${is}` : real && real !== is && kind !== 'missed' ? `${is} (true: ${real})` : is;
      const sign = cell('td', mark.sign, 'mark');
      sign.setAttribute('aria-label', mark.text);
      tr.append(cell('th', this.factors[factor].name), cell('td', read), sign);
      tr.firstChild.scope = 'row';
      return tr;
    }));
  }

  #writeTruth(truth, row) {
    this.should.hidden = !truth;
    if (!truth) return;
    this.app.paint(this.should.querySelector('canvas'), truth.pixels);
    const text = this.should.querySelector('p');
    text.textContent = `True image: ${truth.psnr.toFixed(1)} dB, ${truth.hit ? 'hit' : 'miss'}`;
    text.title = `The dataset’s image with the factors that ${row.toUpperCase()} should have now, and the PSNR of the result against it. A hit is at most ${TOLERANCE} dB below the reconstruction and closer than before the edit.`;
    this.should.dataset.hit = truth.hit;
  }

  /** refresh shows under each group and slot swap what it changes. */
  refresh(state) {
    this.#refreshing.abort();
    const { signal } = (this.#refreshing = new AbortController());
    this.refreshed = this.#refresh(state, signal).catch((err) => { if (!signal.aborted) throw err; });
  }

  async #refresh(state, signal) {
    const { a, b, codes, bcodes } = state;
    const { groups, slots, grid } = this.app;
    const whole = groups.map((g) => putAll(codes, g.slots, bcodes));
    const single = swaps(codes, bcodes);
    await this.app.tabled;
    signal.throwIfAborted();
    await this.#classes(this.app, [codes, ...whole, ...single], 'facts', signal);
    const [ofGroups, ofSlots] = await Promise.all([
      Promise.all(whole.map((to) => this.of(a, b, codes, to))), Promise.all(single.map((to) => this.of(a, b, codes, to, this.app, false))),
    ]);
    if (signal.aborted) return; // write everything at once, for a single layout
    ofGroups.forEach((found, g) => {
      this.write(grid.groupfacts[g], same(whole[g], codes) ? null : found, groups[g].factor);
      grid.trues[g].hidden = !found.truth;
      if (found.truth) this.app.paint(grid.trues[g], found.truth.pixels);
    });
    ofSlots.forEach((found, i) => this.write(grid.slotfacts[i], same(single[i], codes) ? null : found, slots[i].known ? factorOf(slots[i]) : -1));
  }

  /** write shows a result of of() as lines: the change of the slot's own factor, other changes, and hit or miss. */
  write(element, found, own) {
    const lines = [];
    const line = (kind, text) => {
      const span = document.createElement('span');
      span.dataset.kind = kind;
      span.textContent = text;
      lines.push(span);
    };
    if (found?.changes) {
      const mine = own >= 0 ? found.changes[own] : null;
      const [was, is] = mine ? [this.#value(own, mine.before), this.#value(own, mine.after)] : [];
      if (mine?.kind === 'intended') line('intended', `✓ ${was} → ${is}`);
      else if (mine?.kind === 'missed') line('none', `still ${was}`);
      const rest = found.changes.filter((c) => c.factor !== own && c.kind !== 'none');
      const names = rest.map((c) => this.factors[c.factor].name).join(', ');
      if (rest.length) line(own >= 0 ? 'leaked' : 'none', own >= 0 ? `✗ ${names}` : names);
      else if (!mine || mine.kind === 'none') line('none', 'no change');
    }
    if (found?.truth) line(found.truth.hit ? 'intended' : 'leaked', `${found.truth.hit ? 'hit' : 'miss'} ${found.truth.psnr.toFixed(1)} dB`);
    if (lines.length !== element.children.length || !lines.every((l, j) => l.isEqualNode(element.children[j]))) element.replaceChildren(...lines);
    element.title = found?.changes ? found.changes.filter((c) => c.kind !== 'none').map((c) => `${this.factors[c.factor].name}: ${this.#value(c.factor, c.before)} → ${this.#value(c.factor, c.after)} (${MARKS[c.kind].text})`).join('\n') || 'No factor changes.' : '';
  }
}

const MARKS = {
  none: { sign: '', text: 'unchanged' }, intended: { sign: '✓', text: 'as intended' }, leaked: { sign: '✗', text: 'leaked' },
  missed: { sign: '–', text: 'should have changed' }, other: { sign: '•', text: 'changed' },
};
