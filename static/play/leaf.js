// The atlas of a frozen page: the meaning of a slot or a code, from the file's data. The live atlas is a server page.

import { put } from './codes.js';
import { slotName } from './names.js';

const CARRIERS = 24; // maximum number of images shown for a code
const NEAREST = 8;

const make = (tag, props, ...children) => {
  const { data, ...rest } = props;
  const e = Object.assign(document.createElement(tag), rest);
  Object.assign(e.dataset, data);
  e.append(...children);
  return e;
};
const quiet = (textContent) => make('p', { className: 'quiet', textContent });
const count = (n) => n.toLocaleString('en');
const plural = (n, one) => `${count(n)} ${one}${n === 1 ? ' is' : 's are'}`;

export class Leaf {
  #run = 0;
  #painting = []; // canvases waiting for the image of A with a code: {canvas, codes}

  /** examples are the file's; usage has the code counts, if any. */
  constructor(app, { examples, usage }) {
    Object.assign(this, { app, examples, images: usage?.images ?? 0 });
    this.body = make('div', { className: 'atlas' });
    const close = make('button', { type: 'button', textContent: 'Close', data: { testid: 'leaf-close' } });
    close.addEventListener('click', () => this.dialog.close());
    this.dialog = make('dialog', { className: 'leaf', data: { testid: 'leaf' } }, this.body, make('div', { className: 'row' }, close));
    this.dialog.setAttribute('aria-labelledby', 'leaf-title');
    this.dialog.addEventListener('close', () => { if (!this.dialog.open) app.save(); }); // restores the state's URL, unless opened again before this event
    document.getElementById('play').append(this.dialog);
  }

  /** show opens {slot, code}, {slot} or {refused: message}; null closes the atlas. */
  async show(place) {
    const run = ++this.#run;
    if (!place) return this.dialog.close();
    const all = place.refused ? [] : await this.#entries(place);
    if (run !== this.#run) return;
    this.#painting = [];
    this.body.replaceChildren(...(place.refused ? this.#refusal(place) : this.#page(place, all)));
    if (!this.dialog.open) this.dialog.showModal();
    this.dialog.scrollTop = 0;
    const pictures = await this.app.decoder.decode('atlas', this.#painting.map((p) => p.codes)).catch(() => null);
    if (run === this.#run) pictures?.forEach((pixels, j) => this.app.paint(this.#painting[j].canvas, pixels));
  }

  /** entries returns all entries of a slot with their counts, and for a code also with their distances from it. */
  async #entries({ slot, code }) {
    const codes = code === undefined ? this.app.state.codes : put(this.app.state.codes, slot, code);
    const { entries } = await this.app.store.palette({ codes, slot, sort: code === undefined ? 'id' : 'distance', filter: 'all', search: '', offset: 0, limit: Infinity });
    return entries;
  }

  #refusal({ refused }) {
    return [make('h2', { id: 'leaf-title', textContent: 'Not in this file' }), make('p', { textContent: refused })];
  }

  #page({ slot, code }, all) {
    const { app } = this;
    const known = code === undefined ? null : app.names.of(slot, code);
    const title = code === undefined ? `Slot ${slot}` : `Code ${app.text(code)} of slot ${slot}`;
    const called = code === undefined ? slotName(app.slots[slot]) : known?.name ?? 'unnamed';
    const links = app.slots.map((s) => {
      const a = make('a', { className: 'slotlink', href: app.store.atlas(s.index), data: { slot: s.index % 9 } }, make('b', { textContent: s.index }), ` ${slotName(s)}`);
      if (s.index === slot) a.setAttribute('aria-current', 'page');
      return a;
    });
    const nav = make('nav', { className: 'row' }, ...links);
    nav.setAttribute('aria-label', 'Slots');
    const head = make('header', { className: 'head', data: { slot: slot % 9 } }, make('h2', { id: 'leaf-title' }, title, ' ', make('span', { className: 'quiet', textContent: called })), nav);
    return [head, ...(code === undefined ? this.#slot(slot, all) : this.#code(slot, code, known, all))];
  }

  #slot(slot, all) {
    const { shares } = this.app.slots[slot];
    const used = all.filter((e) => e.count > 0).sort((x, y) => y.count - x.count);
    const out = shares?.length ? [quiet(`NMI with each factor (chance-corrected): ${shares.map((f) => `${f.factor} ${Math.round(100 * f.share)}%`).join(', ')}.`)] : [];
    const shown = this.images ? used : all.slice(0, 64);
    const said = this.images ? `On ${count(this.images)} random images, ${plural(used.length, 'code')} used and ${plural(all.length - used.length, 'code')} unused.` : 'This file has no code counts.';
    return [...out, this.#part('Codes', quiet(`${said} Each image is A with the code.`), this.#cards(slot, shown, 'leaf-codes', (e) => (this.images ? `×${e.count}` : '')))];
  }

  #code(slot, code, known, all) {
    const carriers = this.examples.filter((e) => e.codes && this.#entry(e.codes[slot]) === code);
    const nearest = all.filter((e) => e.code !== code && e.distance !== undefined).sort((x, y) => x.distance - y.distance).slice(0, NEAREST);
    const parts = [this.#facts(slot, code, known, all, carriers)];
    if (carriers.length) parts.push(this.#carriers(slot, carriers));
    if (nearest.length) {
      const how = this.app.data.real ? 'By difference in value.' : 'By distance between code vectors, relative to the mean distance between codes.';
      parts.push(this.#part('Nearest codes', quiet(`${how} Each image is A with the code.`), this.#cards(slot, nearest, 'leaf-nearest', (e) => e.distance.toFixed(2))));
    }
    return parts;
  }

  /** entry returns the palette code nearest to a code: itself, or for real numbers a multiple of a quarter. */
  #entry(code) { return this.app.store.entry(code); }

  #facts(slot, code, known, all, carriers) {
    const { app } = this;
    const own = all.find((e) => e.code === code);
    const lines = [];
    const line = (text, testid) => lines.push(make('p', { textContent: text, data: testid ? { testid } : {} }));
    if (this.images) line(`Slot ${slot} has this code on ${count(own?.count ?? 0)} of ${count(this.images)} random images.`, 'leaf-count');
    if (known?.classes?.length) line(`By factor: ${known.told ?? known.name}, on ${Math.round(100 * known.share)}% of those images.`, 'leaf-meaning');
    line(`${count(carriers.length)} of this file’s ${count(this.examples.length)} images have it.`);
    line(`This file has only one checkpoint (step ${count(app.data.step)}), so the code’s history over training is unknown.`, 'leaf-born');
    const take = make('button', { type: 'button', className: 'primary', textContent: 'Use in A', data: { testid: 'leaf-put' } });
    take.addEventListener('click', () => { this.dialog.close(); app.put('a', slot, code); });
    const used = all.filter((e) => e.count > 0 || e.code === code).map((e) => e.code).sort((x, y) => x - y);
    const at = used.indexOf(code);
    const beside = [[used[at - 1], (t) => `‹ ${t}`], [used[at + 1], (t) => `${t} ›`]].filter(([c]) => c !== undefined)
      .map(([c, text]) => make('a', { href: app.store.atlas(slot, c), textContent: text(app.text(c)) }));
    return make('section', { className: 'facts-of' }, this.#canvas(slot, code, 128, `A with code ${app.text(code)} in slot ${slot}`), make('div', {}, ...lines, this.#naming(slot, code, known), make('div', { className: 'row' }, take, ...beside)));
  }

  #naming(slot, code, known) {
    const input = make('input', { value: known?.told === undefined ? '' : known.name, placeholder: known?.told ?? known?.name ?? '', maxLength: 60, autocomplete: 'off' });
    const said = make('span', { className: 'bad' });
    said.setAttribute('role', 'alert');
    const form = make('form', { className: 'row', data: { testid: 'leaf-name' } }, make('label', {}, 'Name ', input), make('button', { textContent: 'Save' }), said);
    form.addEventListener('submit', async (e) => {
      e.preventDefault();
      try {
        await this.app.rename({ slot, code, name: input.value.trim() });
        await this.show({ slot, code });
      } catch (err) {
        said.textContent = err.message;
      }
    });
    return form;
  }

  #carriers(slot, carriers) {
    const { app } = this;
    const factors = app.data.dataset?.factors ?? [];
    const items = carriers.slice(0, CARRIERS).map((e) => {
      const text = factors.map((f, i) => `${f.name} ${f.values[e.classes[i]]}`).join(', ');
      const original = `example:${e.index}`;
      const button = make('button', { type: 'button', className: 'plain', title: text }, make('img', { className: 'pixels', src: app.originalOf(original), width: 64, height: 64, alt: text || `Image ${e.index}` }), make('span', { className: 'quiet', textContent: e.index }));
      button.addEventListener('click', () => { this.dialog.close(); app.choose(slot); app.source('a', { ...e, original }, true); });
      return make('li', {}, button);
    });
    const rows = factors.map((f, i) => {
      const found = new Map();
      for (const { classes } of carriers) found.set(classes[i], (found.get(classes[i]) ?? 0) + 1);
      const text = [...found].sort((x, y) => y[1] - x[1] || x[0] - y[0]).map(([v, n]) => `${f.values[v]} ×${n}`).join(', ');
      const row = make('tr', {}, make('th', { scope: 'row', textContent: f.name }), make('td', { textContent: text }));
      row.toggleAttribute('data-own', app.slots[slot].known && app.slots[slot].first === i);
      return row;
    });
    const table = make('table', { data: { testid: 'leaf-values' } }, make('thead', {}, make('tr', {}, make('th', { scope: 'col', textContent: 'Factor' }), make('th', { scope: 'col', textContent: 'Values of these images' }))), make('tbody', {}, ...rows));
    const scroll = make('div', { className: 'scroll', tabIndex: 0 }, table);
    scroll.setAttribute('role', 'region');
    scroll.setAttribute('aria-label', 'Factor values');
    return this.#part('Images with this code', quiet('The file’s images were chosen so that their swaps have true images, not at random. Their values show what occurs, not how often. Click one to use it as A.'), make('ul', { className: 'cards', data: { testid: 'leaf-images' } }, ...items), ...(rows.length ? [scroll] : []));
  }

  #cards(slot, entries, testid, note) {
    const { app } = this;
    return make('ul', { className: 'cards', data: { testid } }, ...entries.map((e) => {
      const name = app.names.of(slot, e.code)?.name;
      return make('li', {}, make('a', { href: app.store.atlas(slot, e.code) }, this.#canvas(slot, e.code, 64, ''), make('strong', { textContent: name ?? app.text(e.code) }), make('span', { className: 'quiet', textContent: [name && app.text(e.code), note(e)].filter(Boolean).join(' · ') })));
    }));
  }

  #canvas(slot, code, side, label) {
    const { w, h } = this.app.shape;
    const canvas = make('canvas', { className: 'pixels', width: w, height: h });
    canvas.style.inlineSize = canvas.style.blockSize = `${side}px`;
    if (label) {
      canvas.setAttribute('role', 'img');
      canvas.setAttribute('aria-label', label);
    } else canvas.setAttribute('aria-hidden', 'true');
    this.#painting.push({ canvas, codes: put(this.app.state.codes, slot, code) });
    return canvas;
  }

  #part(title, ...children) { return make('section', {}, make('h3', { textContent: title }), ...children); }
}
