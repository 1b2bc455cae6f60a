// The palette: the codes of the selected slot, each shown as the row's image with that code.

import { format, put } from './codes.js';
import { tell } from './names.js';
import { paint, shows } from './pixels.js';
import { inTurns } from './turns.js';

const make = (tag, props, ...children) => {
  const e = Object.assign(document.createElement(tag), props);
  e.append(...children);
  return e;
};

const PAGE = 24;
const LATE = 120; // ms after which images that are still missing are faded

export class Palette {
  #slot = -1;
  #row = 'a';
  #entries = [];
  #loading = null;
  #late = 0;
  #showing = null; // identifies the newest call of #show
  #reply = null; // {total, images} of the newest load: the number of entries and of images counted

  constructor(panel, shape, app) {
    Object.assign(this, { panel, shape, app });
    this.list = panel.querySelector('#entries');
    this.sort = panel.querySelector('#palette-sort');
    this.search = panel.querySelector('#palette-search');
    this.unused = panel.querySelector('#palette-unused');
    this.more = panel.querySelector('#palette-more');
    this.text = panel.querySelector('#palette-said');
    this.sort.addEventListener('change', () => this.#load());
    this.search.addEventListener('input', () => this.#load());
    this.unused.addEventListener('click', () => this.#unfold(this.unused.getAttribute('aria-expanded') !== 'true'));
    this.more.addEventListener('click', () => this.#load(this.#entries.length));
    this.atlas = panel.querySelector('#palette-atlas');
    this.pin = panel.querySelector('#palette-pin');
    this.pin.addEventListener('click', () => this.#pin(this.#atHand()));
    this.name = panel.querySelector('#palette-name');
    this.name.addEventListener('click', () => this.#rename(this.#atHand()));
    for (const button of [this.pin, this.name]) button.disabled = !app.data.nameable;
    this.list.addEventListener('keydown', (e) => this.#key(e));
    this.list.addEventListener('focusin', (e) => this.#rove(e.target.closest('.entry')));
    this.list.addEventListener('pointerover', (e) => {
      const entry = e.target.closest('.entry');
      if (entry && e.pointerType === 'mouse') this.#look(entry);
    });
    this.list.addEventListener('pointerout', (e) => { if (!e.relatedTarget?.closest?.('.entry')) app.lookAway(); });
  }

  #look(entry) {
    if (this.app.hands.held) return;
    const code = Number(entry.dataset.code);
    this.app.look(put(this.app.rowCodes(), this.#slot, code), `${this.app.row().toUpperCase()} with ${this.app.names.say(this.#slot, code)} in slot ${this.#slot}`, this.app.row());
  }

  /** atHand returns the code to name or pin: the held one, or the row's. */
  #atHand() {
    const held = this.app.hands.held?.source;
    return held && held.kind !== 'group' && held.slot === this.#slot ? held.code : this.app.rowCodes()[this.#slot];
  }

  async #pin(code) {
    try {
      await this.app.rename({ slot: this.#slot, code, pin: !this.app.slots[this.#slot].pins.includes(code) });
    } catch (err) {
      this.text.textContent = err.message;
    }
  }

  async #rename(code) {
    const { ask } = await import('./called.js');
    ask(this.app, this.#slot, code);
  }

  #tellAtHand() {
    const code = this.#atHand();
    const said = this.app.names.say(this.#slot, code);
    const pinned = this.app.slots[this.#slot].pins.includes(code);
    this.pin.setAttribute('aria-pressed', String(pinned));
    tell(this.pin, pinned ? 'Unpin' : 'Pin');
    this.pin.title = pinned ? `Unpin ${said} (P on a code)` : `Pin ${said} to the top of the palette (P on a code)`;
    const atlas = this.app.store.atlas(this.#slot, code);
    if (atlas) this.atlas.href = atlas;
    this.atlas.title = `Meaning of ${said}: its images, its nearest codes, its history over training`;
    this.name.title = `Name slot ${this.#slot} and its code ${said}`;
  }

  /** choose shows the entries of a slot. */
  choose(slot) {
    if (slot === this.#slot) return;
    if (this.#slot < 0) return this.#adopt(slot);
    this.#slot = slot;
    this.list.inert = true; // the entries are still the previous slot's
    this.list.toggleAttribute('data-stale', true);
    this.search.value = '';
    this.panel.querySelector('#palette-slot').textContent = slot;
    this.panel.querySelector('#palette-swatch').dataset.slot = slot % 9;
    this.#load();
  }

  /** adopt keeps the entries rendered by the server, and loads their full data later. */
  async #adopt(slot) {
    this.#slot = slot;
    await this.app.decoder.opened;
    await this.app.tabled;
    if (!this.#loading) this.#load();
  }

  /** refresh updates the palette after a change of codes, row or counts. */
  refresh(reload) {
    if (reload || this.sort.value === 'distance') this.#load();
    else this.#show();
  }

  /** unfold shows or hides the codes that the slot never uses, after the others. */
  #unfold(open) {
    this.unused.setAttribute('aria-expanded', String(open));
    this.#load();
  }

  async #load(offset = 0) {
    this.#loading?.abort();
    const aborts = (this.#loading = new AbortController());
    const slot = this.#slot;
    const q = { codes: this.app.rowCodes(), slot, sort: this.sort.value, filter: this.unused.getAttribute('aria-expanded') === 'true' ? 'all' : 'used', search: this.search.value.trim(), offset, limit: PAGE };
    try {
      const reply = await this.app.store.palette(q, aborts.signal);
      if (slot !== this.#slot) return;
      this.list.inert = false;
      this.list.removeAttribute('data-stale');
      this.#entries = offset ? [...this.#entries, ...reply.entries] : reply.entries;
      this.#write(reply);
      this.#show();
    } catch (err) {
      if (err.name !== 'AbortError') this.text.textContent = err.message;
    }
  }

  #write({ total, images }) {
    const focused = document.activeElement?.closest?.('.entry')?.dataset.code;
    const there = new Map([...this.list.querySelectorAll(`.entry[data-of="${this.#slot}"]`)].map((e) => [Number(e.dataset.code), e]));
    const items = this.#entries.map((e) => this.#item(e, images, there.get(e.code) ?? this.#blank(e.code)));
    const all = items.map((entry) => entry.parentElement ?? make('li', { role: 'none' }, entry));
    if (all.length !== this.list.children.length || !all.every((li, j) => li === this.list.children[j])) this.list.replaceChildren(...all);
    if (items[0]) this.#rove(items.find((e) => e.dataset.code === focused) ?? items[0]);
    if (focused !== undefined) items.find((e) => e.dataset.code === focused)?.focus({ preventScroll: true });
    this.more.hidden = this.#entries.length >= total;
    const open = this.unused.getAttribute('aria-expanded') === 'true';
    const left = this.app.data.k - (this.app.slots[this.#slot].used ?? this.app.data.k);
    this.unused.hidden = !images || left <= 0 || this.app.data.real;
    this.unused.textContent = open ? 'Hide unused codes' : `Show ${left.toLocaleString('en')} unused codes`;
    this.#reply = { total, images };
  }

  #tell() {
    const { total, images } = this.#reply ?? {};
    if (total === undefined) return;
    const shown = this.#entries.length < total ? `${this.#entries.length} of ${total}. ` : '';
    const row = this.app.row().toUpperCase();
    tell(this.text, total === 0 ? 'No codes match this filter.'
      : `${shown}Each image is ${row} with the code.` + (images ? ` Counts over ${images.toLocaleString('en')} images.` : ''));
  }

  /** blank returns an entry without text and image. */
  #blank(code) {
    const { w, h } = this.shape;
    const entry = make('a', { className: 'entry', role: 'option', tabIndex: -1, draggable: false },
      make('canvas', { className: 'pixels', width: w, height: h }), make('span', { className: 'name' }), ' ', make('span', { className: 'count' }));
    Object.assign(entry.dataset, { kind: 'entry', code, of: this.#slot, testid: `play-palette-${code}` });
    return entry;
  }

  #item({ code, count, unseen, distance, pinned }, images, entry) {
    entry.href = '#palette'; // the server's link would load another state
    entry.toggleAttribute('data-pinned', !!pinned);
    const [name, note] = [entry.querySelector('.name'), entry.querySelector('.count, .badge')];
    this.app.names.write(name, this.#slot, code);
    note.className = unseen ? 'count badge' : 'count quiet';
    if (this.sort.value === 'distance' && distance !== undefined) tell(note, distance.toFixed(2));
    else tell(note, unseen ? 'unseen' : count ? `×${short(count)}` : '');
    note.title = unseen ? `Unused by this slot on ${images.toLocaleString('en')} images.` : '';
    entry.setAttribute('aria-label', `${name.textContent} ${note.textContent}`.trim() + (count ? `, on ${count} images` : '') + (pinned ? ', pinned' : '')); // starts with exactly the visible text
    const known = this.app.names.of(this.#slot, code);
    entry.title = known?.classes.length ? `Code ${this.app.text(code)}: ${known.told ?? known.name} on ${Math.round(100 * known.share)}% of its ${count} images` : '';
    return entry;
  }

  async #show() {
    this.#tell();
    this.#tellAtHand();
    const codes = this.app.rowCodes();
    const [slot, entries] = [this.#slot, [...this.list.querySelectorAll('.entry')]];
    for (const entry of entries) entry.setAttribute('aria-selected', String(Number(entry.dataset.code) === codes[slot]));
    const tuples = entries.map((entry) => put(codes, slot, Number(entry.dataset.code)));
    const shown = (j) => shows(entries[j].querySelector('.pixels'), format(tuples[j]));
    clearTimeout(this.#late);
    this.#late = setTimeout(() => entries.forEach((entry, j) => entry.toggleAttribute('data-late', !shown(j) && !this.app.decoder.peek(tuples[j]))), LATE);
    const run = (this.#showing = {});
    await this.app.tabled;
    if (run !== this.#showing) return;
    const lacking = [...entries.keys()].filter((j) => !shown(j));
    const pictures = await this.app.pictures('palette', lacking.map((j) => tuples[j]));
    if (!pictures) return;
    clearTimeout(this.#late);
    const { shape } = this;
    await inTurns((function* painting() {
      for (const [n, j] of lacking.entries()) {
        entries[j].removeAttribute('data-late');
        paint(entries[j].querySelector('.pixels'), pictures[n], shape, format(tuples[j]));
        yield;
      }
    })(), () => run === this.#showing);
  }

  mark(source) {
    this.#tellAtHand();
    for (const entry of this.list.querySelectorAll('.entry')) {
      entry.toggleAttribute('data-held', source?.kind === 'entry' && Number(entry.dataset.code) === source.code);
    }
  }

  focus(code) { (this.list.querySelector(`[data-code="${code}"]`) ?? this.list.querySelector('.entry'))?.focus(); }

  #rove(to) {
    if (!to) return;
    for (const entry of this.list.querySelectorAll('.entry')) entry.tabIndex = entry === to ? 0 : -1;
  }

  #key(e) {
    const entry = e.target.closest('.entry');
    if (!entry || e.altKey || e.ctrlKey || e.metaKey) return;
    const all = [...this.list.querySelectorAll('.entry')];
    const at = all.indexOf(entry);
    const top = entry.offsetTop;
    const perRow = Math.max(1, all.filter((other) => other.offsetTop === top).length);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: at - perRow, ArrowDown: at + perRow, Home: 0, End: all.length - 1 }[e.key];
    if (to !== undefined) {
      e.preventDefault();
      all[to]?.focus();
    } else if (e.key === 'p' && !this.pin.disabled) {
      e.preventDefault();
      this.#pin(Number(entry.dataset.code));
    } else if (e.key === 'Enter' || e.key === ' ') {
      e.preventDefault();
      if (!e.repeat) this.app.hands.press(entry);
    }
  }
}

/** short abbreviates a count to fit its column: 940, 1.3k. */
function short(n) {
  return n < 1000 ? String(n) : `${(n / 1000).toFixed(1)}k`;
}
