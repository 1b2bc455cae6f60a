// What changed, as fact: the factors of a picture before and after, as a probe reads them; and the picture that a swap should give,
// where the dataset has it, with PSNR and hit.

import { format, putAll, same, swaps } from './codes.js';
import { psnr } from './pixels.js';

const TOLERANCE = 3; // dB that a swap may lose against the reconstruction that it starts from, and still be a hit
const KEPT = 3000; // readings

/**
 * hit says whether a swap gives the picture that it should, all in dB: of the swap against the truth T, of A's reconstruction against
 * A, of the picture before the swap against T.
 */
export const hit = (swap, reconstruction, before) => swap >= reconstruction - TOLERANCE && swap > before;

/**
 * changes compares what is read before and after, class by factor: {factor, before, after, kind}. intended is the set of factors that
 * should change; null where nothing says which. kind is none, intended, missed (should have changed), leaked (should not), or other.
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
 * wanted are the classes that edited codes should give: those of the picture, and for a slot that took a code of the other side that
 * side's class, else the class that the code stands for. null where that is not known, or slots contradict each other.
 */
export function wanted(side, other, codes, slots, names) {
  if (!side.classes?.length) return null;
  const out = side.classes.slice();
  const set = new Map();
  const rest = []; // slots that are named after nothing
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

/** factorOf is the factor that a slot is named after, −1 where it is named after none. */
export const factorOf = (slot) => (slot.known && slot.name && slot.name !== 'mixed' && slot.name !== 'unused' ? slot.first : -1);

/** follows says whether a mixed slot goes with its group: beside one that is named after its first factor. */
const follows = (slot, factors) => slot.known && slot.name === 'mixed' && factors.has(slot.first);

/** intends are the factors of slots; null where one of them is named after none and goes with no other. */
export function intends(slots, changed) {
  const factors = new Set(changed.map((i) => factorOf(slots[i])).filter((f) => f >= 0));
  return changed.every((i) => factorOf(slots[i]) >= 0 || follows(slots[i], factors)) ? factors : null;
}

export class Facts {
  #probe = null;
  #read = new Map();
  #truths = new Map();
  #lanes = 0; // of readings that nothing overtakes
  #workers = null; // a promise of whether workers read
  #refreshing = new AbortController(); // of the newest refresh; one that was overtaken ends

  constructor(app, shape) {
    Object.assign(this, { app, shape, factors: app.data.dataset?.factors ?? [] });
    this.table = document.getElementById('reading');
    this.should = document.getElementById('should');
    this.ready = this.factors.length ? app.decoder.opened.then(() => app.store.probe()).then((p) => { this.#probe = p; }, () => {}) : Promise.resolve();
  }

  /** classes are those of tuples' pictures in a world, which must be decoded; null without a probe. A lane's newest request wins. */
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

  /** readAll reads pictures in the workers of the page's model, or without them one by one in the page. */
  async #readAll(pictures, lane, signal) {
    if (!pictures.length) return [];
    const { local } = this.app.decoder;
    this.#workers ??= local?.teach(this.#probe.file);
    if (local && (await this.#workers)) {
      const read = await local.read(lane, pictures.map((p) => p.slice()), signal).catch(() => null); // some are parts of a larger message
      if (read) return read;
    }
    const found = [];
    for (const pixels of pictures) {
      await new Promise((done) => setTimeout(done)); // what the visitor does comes first
      signal?.throwIfAborted();
      found.push(this.#probe.read(pixels));
    }
    return found;
  }

  /** truth is the dataset's picture of classes, {pixels}, or null. */
  #truth(classes) {
    const name = classes.join('.');
    if (!this.#truths.has(name)) this.#truths.set(name, this.app.store.truth(classes).catch(() => null));
    return this.#truths.get(name);
  }

  /**
   * of says what became of a side when its codes went from one tuple to another: {changes, want, truth: {pixels, psnr, hit}}; parts are
   * null where they are not known. world is the model: {key, decoder: {peek(codes)}, slots, names}, the page's if none is given; truth
   * says whether it is asked for.
   */
  async of(side, other, from, to, world = this.app, asked = true) {
    const { decoder, slots, names } = world;
    const changed = to.flatMap((c, i) => (c === from[i] ? [] : [i]));
    const [before, after] = await this.#classes(world, [from, to]);
    const want = wanted(side, other, to, slots, names);
    const out = { changes: before && after ? changes(before, after, intends(slots, changed), want) : null, want, truth: null };
    const [old, now, base] = [from, to, side.codes].map((codes) => decoder.peek(codes));
    if (!asked || !want || !changed.length || !old || !now || !base || !side.psnr || same(want, side.classes)) return out; // what should stay as it is cannot come nearer
    const truth = await this.#truth(want);
    if (!truth) return out;
    const reached = psnr(now, truth.pixels);
    out.truth = { ...truth, psnr: reached, hit: hit(reached, side.psnr, psnr(old, truth.pixels)) };
    return out;
  }

  #value(f, c) { return this.factors[f].values[c]; }

  /** result writes what the large picture changed. */
  async result(row, codes) {
    const { state } = this.app;
    const [side, other] = row === 'b' ? [state.b, state.a] : [state.a, state.b];
    const run = (this.shown = {});
    const found = await this.of(side, other, side.codes, codes);
    if (this.shown !== run) return;
    this.#writeReading(found, side);
    this.#writeTruth(found.truth, row);
  }

  #written = ''; // what the reading shows

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
      tr.title = `${this.factors[factor].name}: ${before === after ? `${is}, unchanged` : `${was} became ${is}, ${mark.text}`}, as the probe reads it` + (real ? `; true: ${real}` : '');
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
    text.textContent = `True picture: ${truth.psnr.toFixed(1)} dB, ${truth.hit ? 'a hit' : 'a miss'}`;
    text.title = `The dataset’s picture that ${row.toUpperCase()} should be now, and the PSNR of the result against it. A hit is at most ${TOLERANCE} dB below the reconstruction.`;
    this.should.dataset.hit = truth.hit;
  }

  /** refresh writes what swaps of groups and slots change, under each of them. */
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
    if (signal.aborted) return; // all at once, so that the page is laid out once
    ofGroups.forEach((found, g) => {
      this.write(grid.groupfacts[g], same(whole[g], codes) ? null : found, groups[g].factor);
      grid.trues[g].hidden = !found.truth;
      if (found.truth) this.app.paint(grid.trues[g], found.truth.pixels);
    });
    ofSlots.forEach((found, i) => this.write(grid.slotfacts[i], same(single[i], codes) ? null : found, slots[i].known ? factorOf(slots[i]) : -1));
  }

  /** write writes what of found as lines: what became of the slot's own factor, what else changed, and hit or miss. */
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
      else if (mine?.kind === 'missed') line('none', `stays ${was}`);
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
