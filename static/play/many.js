// Many images: swaps of groups between pairs, as in the paper's figure, and A's edit applied to other images.

import { edits, format, putAll } from './codes.js';
import { Superseded } from './decoder.js';
import { groupName } from './names.js';

const make = (tag, props = {}, ...children) => {
  const e = Object.assign(document.createElement(tag), props);
  e.append(...children);
  return e;
};

export class Many {
  #seed = 1;
  #run = 0;

  constructor(section, app) {
    Object.assign(this, { section, app });
    const part = (name) => section.querySelector(`[data-part="${name}"]`);
    Object.assign(this, { what: part('what'), n: part('n'), files: part('files'), said: part('said'), table: section.querySelector('table') });
    for (const select of [this.what, this.n]) select.addEventListener('change', () => this.draw(app.state));
    part('again').addEventListener('click', () => { this.#seed++; this.draw(app.state); });
  }

  /** draw updates the table for a state, once it has not changed for a moment. */
  async draw(state) {
    const run = ++this.#run;
    if (!this.section.open) return;
    await new Promise((done) => setTimeout(done, 120));
    if (run !== this.#run) return;
    const n = Number(this.n.value);
    this.files.hidden = this.what.value !== 'pairs';
    for (const link of this.files.querySelectorAll('a')) {
      const file = this.app.store.file(`figure.${link.dataset.format}`, state);
      if (file) link.href = `${file}&n=${n}&seed=${this.#seed}`;
    }
    const still = () => run === this.#run;
    try {
      await (this.what.value === 'pairs' ? this.#pairs(state, n, still) : this.#edit(state, n, still));
    } catch (err) {
      if (still() && !(err instanceof Superseded)) this.said.textContent = err.message;
    }
  }

  #begin(heads) {
    this.table.tHead.replaceChildren(make('tr', {}, ...heads.map((text) => make('th', { scope: 'col', textContent: text }))));
    this.table.tBodies[0].replaceChildren();
    this.table.hidden = false;
  }

  /** decode returns a world whose decoder has the given tuples. */
  async #decode(tuples) {
    const pixels = await this.app.decoder.decode('many', tuples);
    const byName = new Map(tuples.map((t, j) => [format(t), pixels[j]]));
    const { slots, names } = this.app;
    return { slots, names, decoder: { peek: (codes) => byName.get(format(codes)) } };
  }

  #picture(pixels, label) {
    const { w, h } = this.app.shape;
    const canvas = make('canvas', { className: 'pixels', width: w, height: h, role: 'img' });
    canvas.setAttribute('aria-label', label);
    this.app.paint(canvas, pixels);
    return canvas;
  }

  async #pairs(state, n, still) {
    const owned = this.app.groups.filter((g) => g.owned);
    const groups = owned.length ? owned : this.app.groups;
    this.said.textContent = 'Decoding …';
    const drawn = await this.app.store.images(2 * (n - 1), this.#seed);
    if (!still()) return;
    this.#begin(['', 'A', 'B', ...groups.map(groupName)]);
    const pairs = [[{ ...state.a, codes: state.a.codes, now: state.codes }, { ...state.b, now: state.bcodes }]];
    for (let i = 0; i + 1 < drawn.length; i += 2) pairs.push([drawn[i], drawn[i + 1]]);
    const count = { hits: 0, measured: 0 };
    for (const [at, [a, b]] of pairs.entries()) {
      const [from, to] = [a.now ?? a.codes, b.now ?? b.codes];
      const swaps = groups.map((g) => putAll(from, g.slots, to));
      const world = await this.#decode([from, to, a.codes, ...swaps]);
      if (!still()) return;
      const row = make('tr', {}, make('th', { scope: 'row', textContent: at ? `pair ${at + 1}` : 'this pair' }));
      row.append(...[[from, 'A'], [to, 'B']].map(([codes, name]) => make('td', {}, this.#picture(world.decoder.peek(codes), `${name} of pair ${at + 1}`))));
      this.table.tBodies[0].append(row);
      for (const [g, codes] of swaps.entries()) {
        const cell = make('td', {}, this.#picture(world.decoder.peek(codes), `A of pair ${at + 1} with B’s ${groupName(groups[g])}`));
        row.append(cell);
        const found = await this.app.facts.of(a, b, from, codes, world);
        if (!still()) return;
        this.#fact(cell, found, groups[g].factor);
        if (found.truth) { count.measured++; count.hits += found.truth.hit ? 1 : 0; }
      }
    }
    this.said.textContent = count.measured ? `${count.hits} of ${count.measured} swaps are hits: at most 3 dB below the reconstruction and closer to the true image than before.` : '';
  }

  #fact(cell, found, factor) {
    const fact = make('p', { className: 'fact' });
    this.app.facts.write(fact, found, factor);
    cell.append(fact);
  }

  async #edit(state, n, still) {
    const list = edits(state.codes, state.a.codes);
    if (!list.length) {
      this.table.hidden = true;
      this.said.textContent = 'Edit a slot of A first. The same codes are then applied to other images.';
      return;
    }
    this.said.textContent = 'Decoding …';
    const drawn = await this.app.store.images(n, this.#seed);
    if (!still()) return;
    const names = list.map(({ slot, to }) => `slot ${slot}${this.app.named(slot)} = ${this.app.names.say(slot, to)}`);
    this.#begin(['', 'Reconstruction', 'Edited', 'What changed']);
    const count = { clean: 0, read: 0, hits: 0, measured: 0 };
    const other = { codes: [], classes: [] }; // the codes come from no other image
    for (const side of drawn) {
      const codes = list.reduce((t, { slot, to }) => { t[slot] = to; return t; }, side.codes.slice());
      const world = await this.#decode([side.codes, codes]);
      const found = await this.app.facts.of(side, other, side.codes, codes, world);
      if (!still()) return;
      const pictures = [[side.codes, 'reconstructed'], [codes, 'edited']].map(([t, name]) => make('td', {}, this.#picture(world.decoder.peek(t), `Image ${side.index}, ${name}`)));
      const said = make('td', {});
      this.#fact(said, found, this.#factor(list));
      this.table.tBodies[0].append(make('tr', {}, make('th', { scope: 'row', textContent: side.index }), ...pictures, said));
      if (found.changes) { count.read++; count.clean += found.changes.some((c) => c.kind === 'leaked' || c.kind === 'missed' || c.kind === 'other') ? 0 : 1; }
      if (found.truth) { count.measured++; count.hits += found.truth.hit ? 1 : 0; }
    }
    const parts = [`${names.join(', ')}.`];
    if (count.read) parts.push(`Nothing else changed in ${count.clean} of ${count.read} images, as read by the probe.`);
    if (count.measured) parts.push(`${count.hits} of ${count.measured} are hits.`);
    const text = parts.join(' ');
    this.said.textContent = text[0].toUpperCase() + text.slice(1);
  }

  /** factor returns the common factor of all edited slots, or −1 if they differ. */
  #factor(list) {
    const all = new Set(list.map(({ slot }) => this.app.groups.find((g) => g.slots.includes(slot)).factor));
    return all.size === 1 ? [...all][0] : -1;
  }
}
