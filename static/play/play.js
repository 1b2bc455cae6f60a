// The playground: owns the state, which is the URL, and updates its parts.

import { edits, format, interpolation, put, putAll, same, swaps, writer } from './codes.js';
import { Beside } from './beside.js';
import { Blend } from './blend.js';
import { Decoder, Superseded } from './decoder.js';
import { equal } from './address.js';
import { Facts } from './facts.js';
import { Grid } from './grid.js';
import { Hands } from './hold.js';
import { History } from './history.js';
import { Names, groupName, label, slotName, tell } from './names.js';
import { Palette } from './palette.js';
import { remember, remembered } from './pair.js';
import { Side } from './side.js';
import { Strip } from './strip.js';
import { canvasFor, paint, pixelsOf } from './pixels.js';
import { atOnce, inTurns, onScreen } from './turns.js';

const $ = (id) => document.getElementById(id);

class Play {
  #row = 'a'; // row shown enlarged
  #slot = 0;
  #first = null; // the state of the first view, which is drawn in pieces: no edit is waiting for it
  #settled = false; // whether the first view is complete
  #painted = false; // whether an image has been shown; the first one's time includes opening the socket and the model
  #looking = null; // {codes, text} shown instead of the row
  #uploads; // originals that the server does not store: name → data URL
  #moved = null; // slots whose code changes when re-encoded
  #checks = null;

  constructor(root, data, store) {
    this.data = data;
    this.store = store;
    this.shape = { h: data.h, w: data.w, c: data.c };
    this.text = writer(data);
    this.#name(data);
    const { a, b, codes, bcodes, order } = data;
    const start = { a, b, codes, bcodes, order };
    this.history = History.restore(history.state?.play, start, equal);
    this.#uploads = new Map(history.state?.uploads);
    this.state = this.history.present;
    this.decoder = new Decoder(store);
    this.hands = new Hands(root, this);
    this.grid = new Grid($('grid'), this.shape, this);
    this.strip = new Strip($('strip'), this.shape, this);
    this.palette = new Palette($('palette'), this.shape, this);
    this.sides = { a: new Side($('side-a'), this.shape, data.dataset, this), b: new Side($('side-b'), this.shape, data.dataset, this) };
    this.image = canvasFor($('image'), this.shape);
    this.blend = new Blend($('blend'), this);
    $('many')?.addEventListener('toggle', async () => {
      this.many ??= new (await import('./many.js')).Many($('many'), this);
      this.many.draw(this.state);
    });
    this.beside = $('beside') && new Beside($('beside'), this);
    this.facts = new Facts(this, this.shape);
    this.#buttons();
    this.#live();
    this.choose(data.slot);
  }

  /** begin draws the first view, in a separate task. */
  async begin() {
    await onScreen();
    const bench = new URLSearchParams(location.search).has('bench'); // not part of the state
    this.save();
    this.#render();
    $('play').dataset.ready = 'yes';
    const { counted } = this.data;
    if (!counted.ready && !counted.problem) {
      remember(this.data.key, this.data.pair);
      this.#count();
    } else this.#tellPair();
    if (bench) import('./bench.js').then(({ run }) => run(this));
  }

  // Called by the parts.

  paint(canvas, pixels) { paint(canvas, pixels, this.shape); }
  row() { return this.#row; }
  slot() { return this.#slot; }
  rowCodes() { return this.#row === 'b' ? this.state.bcodes : this.state.codes; }
  named(i) { return slotName(this.slots[i]) ? `, ${slotName(this.slots[i])}` : ''; }
  heldName(source) { return source.kind === 'group' ? groupName(this.groups[source.group]) : this.names.of(source.slot, source.code)?.name ?? this.text(source.code); }

  #name({ slots, groups }) {
    Object.assign(this, { slots, groups, names: new Names(slots, this.text) });
  }
  originalOf(original) { return this.#uploads.get(original) ?? this.store.original(original); }

  /** pictures decodes tuples; null if the request was superseded or failed. A failure is shown. */
  pictures(lane, tuples) {
    const decode = () => this.decoder.decode(lane, tuples);
    return tuples.length ? this.#orSay(decode) : decode().catch(() => null); // an empty request must not clear an earlier failure
  }

  async #orSay(work) {
    try {
      const done = await work();
      this.fail('');
      return done;
    } catch (err) {
      if (!(err instanceof Superseded)) this.fail(err.message === 'Failed to fetch' || !err.message ? 'Cannot reach the server. This image is out of date and will update when the connection returns.' : err.message);
      return null;
    }
  }

  #owing = false; // whether the page shows less than the state

  /** tabled resolves once the table of swaps is on the screen or has failed. */
  tabled = Promise.resolve();

  /** fail shows next to the image why it is out of date; an empty string clears it. */
  fail(why) {
    this.#owing = why !== '';
    if ($('failed').textContent === why) return;
    $('failed').textContent = why;
    $('failed').hidden = why === '';
    $('result').toggleAttribute('data-stale', why !== '');
  }

  // Edits of the state.

  #commit(next, said) {
    if (!equal(next, this.history.present)) this.history.push(next);
    this.#become(next, said);
  }

  #become(next, said) {
    if (this.hands.held) this.hands.send({ type: 'escape' }); // the held code may no longer exist
    this.state = next;
    this.#looking = null;
    this.save();
    this.#render();
    if (said) this.#say(said);
  }

  save() {
    const uploads = [...this.#uploads].filter(([name]) => this.history.states().some((s) => s.a.original === name || s.b.original === name));
    history.replaceState({ play: this.history.toJSON(), uploads }, '', this.store.address(this.state));
  }

  put(row, slot, code, how = 'Set') {
    const key = row === 'b' ? 'bcodes' : 'codes';
    const before = this.state[key][slot];
    this.#row = row;
    const [was, is] = [before, code].map((c) => this.names.say(slot, c));
    if (before === code) {
      this.#become(this.state, `Slot ${slot} of ${row.toUpperCase()} already has ${is}.`);
      return;
    }
    this.#commit({ ...this.state, [key]: put(this.state[key], slot, code) }, `${how} slot ${slot} of ${row.toUpperCase()}${this.named(slot)}: ${was} → ${is}.`);
  }

  /** takeGroup copies the other row's codes of a group into a row. */
  takeGroup(row, g) {
    const group = this.groups[g];
    const [key, other, from] = row === 'b' ? ['bcodes', 'codes', 'A'] : ['codes', 'bcodes', 'B'];
    this.#row = row;
    const codes = putAll(this.state[key], group.slots, this.state[other]);
    if (same(codes, this.state[key])) this.#become(this.state, `${row.toUpperCase()} and ${from} have the same ${groupName(group)}.`);
    else this.#commit({ ...this.state, [key]: codes }, `${row.toUpperCase()} has ${from}’s ${groupName(group)}, slots ${group.slots.join(', ')}.`);
  }

  takeSwap(i) { this.put('a', i, this.state.bcodes[i]); }

  takeStep(j) {
    const codes = interpolation(this.state.codes, this.state.bcodes, this.state.order)[j];
    this.#row = 'a';
    this.#commit({ ...this.state, codes }, j === 0 ? 'A is unchanged.' : `A now has ${j} slot${j > 1 ? 's' : ''} of B.`);
  }

  reorder(order) {
    if (!order || same(order, this.state.order)) return;
    this.#commit({ ...this.state, order }, `Swap order: ${order.join(', ')}.`);
  }

  /** source changes the image of a side. While a slider moves (done is false), intermediate images are not added to the undo history. */
  source(side, { index, classes, codes, psnr, original }, done) {
    if (original?.startsWith('data:')) {
      const name = `upload:${crypto.randomUUID?.() ?? Math.random()}`;
      this.#uploads.set(name, original);
      original = name;
    }
    const next = { ...this.state, [side]: { index, classes: classes ?? [], codes, psnr, original }, [side === 'a' ? 'codes' : 'bcodes']: codes };
    this.#row = 'a';
    if (done) this.#commit(next, `${side.toUpperCase()} is ${index >= 0 ? `image ${index}` : 'your image'}; codes: ${codes.map((c, i) => this.names.say(i, c)).join(', ')}.`);
    else { this.hands.send({ type: 'escape' }); this.state = next; this.#render(); }
  }

  #undo() { this.#jump(this.history.undo(), 'Undone.'); }
  #redo() { this.#jump(this.history.redo(), 'Redone.'); }

  #jump(state, said) {
    if (!state) return;
    const onlyB = same(state.codes, this.state.codes) && !same(state.bcodes, this.state.bcodes);
    this.#row = onlyB ? 'b' : 'a';
    this.#become(state, said);
  }

  #reset() {
    this.#row = 'a';
    this.#commit({ ...this.state, codes: this.state.a.codes, bcodes: this.state.b.codes }, 'A and B are back to their encoded codes.');
  }

  /** showRow shows a row enlarged and in the palette. */
  showRow(row) {
    if (row === this.#row) return;
    this.#row = row;
    this.#become(this.state, `Showing row ${row.toUpperCase()}.`);
  }

  /** choose selects the slot shown in the palette; asked announces it. */
  choose(slot, asked = false) {
    this.#slot = slot;
    this.grid.choose(slot);
    if (this.hands.held?.source.kind !== 'entry') this.palette.choose(slot);
    $('palette-factor').textContent = slotName(this.slots[slot]);
    if (asked) this.#say(`Codes for slot ${slot}${this.named(slot)}.`);
  }

  // Called by Hands.

  pick({ source, by }) {
    this.choose(source.slot);
    this.#mark(source, null, by);
    const group = source.kind === 'group';
    const what = group ? `the group ${this.heldName(source)}` : this.names.say(source.slot, source.code);
    const from = { cell: () => ` from ${source.row.toUpperCase()}, slot ${source.slot}${this.named(source.slot)}`, entry: () => ` from the palette of slot ${source.slot}${this.named(source.slot)}`, group: () => '' }[source.kind]();
    const how = group
      ? { drag: 'Drop it on A or B.', click: 'Click A or B to copy it there from the other row.', keys: 'Choose a row with the arrow keys, then press Enter. Press Escape to cancel.' }[by]
      : { drag: 'Drop it on a slot.', click: 'Click a slot to put it there.', keys: 'Choose a slot with the arrow keys, then press Enter. Press Escape to cancel.' }[by];
    this.#say(`Holding ${what}${from}. ${how}`);
    $('hint').textContent = `Holding ${what}${from}. ${how}` + (by === 'click' ? ' Press Esc to cancel.' : '');
    this.#origin = document.activeElement;
    if (source.kind !== 'cell' && by !== 'drag') this.#preview({ row: this.#row, slot: source.slot, group: source.group }, source.code);
    if (source.kind === 'entry' && by === 'keys') this.grid.rows[this.#row][source.slot].focus();
  }

  #origin = null;

  over({ source, over, by }) {
    this.#mark(source, over, by);
    if (over) this.#preview(over, source.code);
    else { this.#looking = null; this.#showImage(); }
  }

  place({ source, to, by }) {
    this.#release();
    this.choose(to.slot);
    if (to.group !== undefined) this.takeGroup(to.row, to.group);
    else this.put(to.row, to.slot, source.code);
    if (by === 'keys') this.grid.rows[to.row][to.slot].focus();
  }

  cancel({ by }) {
    this.#release();
    this.#showImage();
    this.#say('Nothing was changed.');
    if (by === 'keys') this.#origin?.focus();
  }

  #release() {
    this.#looking = null;
    this.#mark(null, null, '');
    $('hint').innerHTML = this.#hint;
  }

  #hint = $('hint').innerHTML;

  #mark(source, over, by) {
    this.grid.mark(source, over);
    this.palette.mark(source);
    document.documentElement.toggleAttribute('data-dragging', by === 'drag');
    $('play').toggleAttribute('data-holding', !!source);
    $('result').toggleAttribute('data-over', !!over);
  }

  #preview({ row, slot, group }, code) {
    const [codes, other, from] = row === 'b' ? [this.state.bcodes, this.state.codes, 'A'] : [this.state.codes, this.state.bcodes, 'B'];
    const whole = group === undefined ? null : this.groups[group];
    this.#looking = whole
      ? { codes: putAll(codes, whole.slots, other), row, text: `with ${from}’s ${groupName(whole)}`, live: true }
      : { codes: put(codes, slot, code), row, text: `with ${this.names.say(slot, code)} in slot ${slot}`, live: true };
    this.#showImage();
  }

  // Preview: an already decoded image, shown enlarged while a pointer is over it.

  look(codes, text, row = 'a') {
    if (this.hands.held) return;
    this.#looking = { codes, row, text, plain: true };
    this.#showImage();
  }

  /** lookAt shows the result of look.draw, or the image of look.codes, until another preview starts. */
  lookAt(look) {
    this.#looking = look;
    this.#showImage();
  }

  /** flip marks slots of A whose code changes under noise. */
  flip(slots) { this.grid.flip(slots); }

  /** pixelsOfA returns the pixels of A's original, or of its reconstruction if there is none. */
  async pixelsOfA() {
    const { codes } = this.state.a;
    const original = $('side-a').querySelector('[data-part="original"]');
    if (original.hidden) return (await this.decoder.decode('aside', [codes]))[0];
    await original.decode();
    return pixelsOf(original, this.shape);
  }

  lookAway() {
    if (!this.#looking || this.hands.held) return;
    this.#looking = null;
    this.#showImage();
  }

  // Drawing.

  #render() {
    this.grid.draw(this.state, this.#moved);
    this.strip.draw(this.state);
    this.sides.a.draw(this.state.a);
    this.sides.b.draw(this.state.b);
    this.#drawTools();
    this.#drawEdits();
    this.#showImage();
    this.#showRest();
    this.blend.draw(this.state);
    this.#drawBeside();
    this.many?.draw(this.state);
    this.palette.refresh();
    this.#check();
  }

  async #showImage() {
    const look = this.#looking;
    const codes = look?.codes ?? this.rowCodes();
    const [title, text] = [(look?.row || this.#row).toUpperCase(), look?.text ?? this.#describe()];
    $('result').toggleAttribute('data-live', !!look?.live);
    const name = look?.name ?? format(codes);
    this.image.dataset.showing = name;
    const started = performance.now();
    const here = look?.draw ? null : this.decoder.peek(codes);
    const [pixels] = here ? [here] : ((await this.#orSay(() => (look?.draw ? look.draw().then((p) => [p]) : this.decoder.decode('held', [codes])))) ?? []);
    if (!pixels || this.image.dataset.showing !== name) return;
    tell($('result-name'), look?.plain ? '' : title);
    tell($('result-state'), text);
    paint(this.image, pixels, this.shape, name);
    label(this.image, `${title} ${text}`);
    if (!look?.draw) this.facts.result(look?.row || this.#row, codes);
    if (!here && this.#painted) $('took').textContent = `Decoded in ${Math.max(1, Math.round(performance.now() - started))} ms`;
    this.#painted = true;
  }

  #describe() {
    const n = edits(this.rowCodes(), this.state[this.#row].codes).length;
    return n === 0 ? 'as encoded' : `with ${n} slot${n > 1 ? 's' : ''} changed`;
  }

  async #showRest() {
    const state = this.state;
    this.#first ??= state;
    const { codes, bcodes } = state;
    const table = [codes, bcodes, ...this.groups.map((g) => putAll(codes, g.slots, bcodes)), ...swaps(codes, bcodes)];
    this.grid.wait(table.some((t) => !this.decoder.peek(t)));
    const now = this.pictures('strip', table); // first, because it shows the edit
    this.tabled = now.then(onScreen); // other images wait for it, to leave it the CPU
    const byName = new Map();
    const pictures = (t) => byName.get(format(t));
    const take = async (tuples, asked) => {
      const decoded = await asked;
      decoded?.forEach((pixels, j) => byName.set(format(tuples[j]), pixels));
      return !!decoded && state === this.state;
    };
    if (!(await take(table, now))) return;
    const wanted = () => state === this.state;
    if (this.#settled || state !== this.#first) atOnce(this.grid.showing(state, pictures));
    else if (!(await inTurns(this.grid.showing(state, pictures), wanted))) return;
    this.facts.refresh(state);
    await this.tabled;
    const others = [state.a.codes, state.b.codes, ...this.strip.lacks(state), ...swaps(bcodes, codes)].filter((t) => !byName.has(format(t)));
    if (!wanted() || !(await take(others, this.pictures('rest', others)))) return;
    this.sides.a.show(state.a, pictures(state.a.codes));
    this.sides.b.show(state.b, pictures(state.b.codes));
    if (!(await inTurns(this.grid.showingBack(state, pictures), wanted))) return;
    if (!(await inTurns(this.strip.showing(state, pictures), wanted))) return;
    this.#settled = true;
    if (!this.#looking) this.facts.result(this.#row, this.rowCodes()); // A as encoded may only just have been decoded
  }

  #pair = '';

  /** drawBeside updates the side-by-side view when A or B is another image; edits apply to this model only. */
  #drawBeside() {
    const { a, b } = this.state;
    const pair = [a.index, b.index, a.codes, b.codes].join();
    if (pair !== this.#pair) this.beside?.draw(this.state);
    this.#pair = pair;
  }

  #drawTools() {
    $('undo').disabled = !this.history.canUndo;
    $('redo').disabled = !this.history.canRedo;
    $('reset').disabled = same(this.state.codes, this.state.a.codes) && same(this.state.bcodes, this.state.b.codes);
    for (const button of document.querySelectorAll('[data-do]')) button.disabled = $(button.dataset.do).disabled;
    this.rest?.();
    const image = this.store.picture(this.rowCodes());
    for (const link of document.querySelectorAll('#download [data-file]')) {
      const file = link.dataset.file;
      link.href = file === 'png' ? `${image}?download` : file === 'png4' ? `${image}?x=4&download` : this.store.file(file, this.state);
    }
    for (const [name, side] of [['a', this.state.a], ['b', this.state.b]]) {
      const kept = document.querySelector(`#choose input[name="${name}"]`);
      if (kept && side.index >= 0) kept.value = side.index;
    }
  }

  #drawEdits() {
    const row = this.#row;
    const list = edits(this.rowCodes(), this.state[row].codes);
    const items = list.map(({ slot, from, to }) => {
      const [was, is] = [from, to].map((c) => this.names.say(slot, c));
      const short = [from, to].map((c) => this.names.of(slot, c)?.name ?? this.text(c));
      const li = document.createElement('li');
      const back = document.createElement('button');
      back.type = 'button';
      back.className = 'edit';
      back.dataset.slot = slot % 9;
      back.title = `Slot ${slot}${this.named(slot)}: ${was} → ${is}. Click to restore ${was}.`;
      back.textContent = `${slot}: ${short[0]} → ${short[1]} ×`;
      back.setAttribute('aria-label', `${back.textContent}. Slot ${slot}${this.named(slot)}: restore ${was}`);
      back.addEventListener('click', () => this.put(row, slot, from, 'Restored'));
      li.append(back);
      return li;
    });
    $('edits').replaceChildren(...items);
  }

  /** check shows which codes are preserved when the decoded image is re-encoded. */
  async #check() {
    this.#checks?.abort();
    const aborts = (this.#checks = new AbortController());
    const codes = this.rowCodes();
    const row = this.#row;
    await new Promise((done) => setTimeout(done, 350));
    if (aborts.signal.aborted) return;
    try {
      const { moved, kept } = await this.store.check(codes, aborts.signal);
      $('check').textContent = `Re-encoding: ${kept} of ${codes.length} codes preserved`;
      $('check').title = kept === codes.length ? 'Re-encoding the decoded image gives the same codes.'
        : `Re-encoding the decoded image changes the code of slot${moved.length > 1 ? 's' : ''} ${moved.join(', ')}, marked ↯.`;
      this.#moved = row === 'a' ? new Set(moved) : null;
      this.grid.draw(this.state, this.#moved);
    } catch (err) {
      if (err.name !== 'AbortError') $('check').textContent = '';
    }
  }

  async #count() {
    try {
      const reply = await this.store.usage();
      if (reply.state !== 'ready') {
        if (reply.early && !this.slots[0].known) await this.#relabel();
        $('palette-said').textContent = `Counting which codes are used: ${reply.done.toLocaleString('en')} of ${reply.of.toLocaleString('en')} images.`;
        setTimeout(() => this.#count(), 1000);
        return;
      }
      await this.#relabel();
      this.#offer(reply.usage.pair);
    } catch (err) {
      $('palette-said').textContent = err.message;
    }
  }

  /** offer links to the playground's new initial pair, chosen once all codes are counted, without changing the current images. */
  #offer(pair) {
    const { a, b } = this.state;
    remember(this.data.key, null);
    if (!pair || (pair.a === a.index && pair.b === b.index)) return;
    const link = Object.assign(document.createElement('a'), { href: `${location.pathname}?a=${pair.a}&b=${pair.b}`, textContent: `images ${pair.a} and ${pair.b}` });
    $('truest').replaceChildren('The playground now opens with ', link, `: ${pair.hits} of their ${pair.groups} group swaps are hits.`);
    $('truest').hidden = false;
  }

  /** tellPair tells a user who left before counting finished that the initial pair has changed, with a link to the earlier one. */
  #tellPair() {
    const { key, pair } = this.data;
    const { a, b } = this.state;
    const before = remembered(key);
    if (!before || !same([a.index, b.index], pair)) return;
    remember(key, null);
    if (same(before, pair)) return;
    const link = Object.assign(document.createElement('a'), { href: `${location.pathname}?a=${before[0]}&b=${before[1]}`, textContent: `images ${before.join(' and ')}` });
    $('truest').replaceChildren('Counting has finished since your last visit. The playground now opens with this pair, which has the most swap hits; before, it opened with ', link, '.');
    $('truest').hidden = false;
  }

  /** relabel reloads the table and the names from the page, now that the factors of slots are known. */
  async #relabel() {
    const reply = await fetch(location.href);
    const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
    this.#name(JSON.parse(page.getElementById('play-data').textContent));
    this.hands.send({ type: 'cancel' });
    for (const id of ['grid', 'blend']) $(id).replaceWith(document.adoptNode(page.getElementById(id)));
    this.grid = new Grid($('grid'), this.shape, this);
    this.blend = new Blend($('blend'), this);
    this.grid.choose(this.#slot);
    $('palette-factor').textContent = slotName(this.slots[this.#slot]);
    this.#render();
    this.palette.refresh(true);
  }

  /** rename saves a name or a pin and updates all names on the page. */
  async rename(change) {
    this.#name(await this.store.rename(change, this.state));
    if (this.hands.held) this.hands.send({ type: 'escape' });
    $('palette-factor').textContent = slotName(this.slots[this.#slot]);
    this.#render();
    this.palette.refresh(true);
  }

  #say(text) { $('said').textContent = text; }

  #buttons() {
    $('undo').addEventListener('click', () => this.#undo());
    $('redo').addEventListener('click', () => this.#redo());
    $('reset').addEventListener('click', () => this.#reset());
    $('share').addEventListener('click', () => this.#share());
    $('legend').addEventListener('click', async () => (await import('./tour.js')).legend());
    $('checkpoint').addEventListener('change', (e) => this.store.choose(e.target.value));
    for (const button of document.querySelectorAll('.views button')) button.addEventListener('click', () => this.grid.view(button.dataset.view));
    for (const button of document.querySelectorAll('[data-do]')) button.addEventListener('click', () => $(button.dataset.do).click());
    this.#rove($('undo').closest('.tools'));
    addEventListener('keydown', (e) => this.#key(e));
    document.addEventListener('click', (e) => { if (!$('download').contains(e.target)) $('download').open = false; });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { this.grid.ink = null; this.#showRest(); });
  }

  /** rove makes a toolbar a single tab stop; arrow keys move within it. */
  #rove(bar) {
    const all = () => [...bar.querySelectorAll('button, summary')].filter((b) => !b.disabled);
    const rest = () => {
      const at = all().find((b) => b === document.activeElement) ?? all()[0];
      for (const b of bar.querySelectorAll('button, summary')) b.tabIndex = b === at ? 0 : -1;
    };
    bar.addEventListener('focusin', rest);
    bar.addEventListener('keydown', (e) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
      if (!by) return;
      e.preventDefault();
      const list = all();
      list[(list.indexOf(document.activeElement) + by + list.length) % list.length]?.focus();
    });
    this.rest = rest;
    rest();
  }

  #key(e) {
    if (!(e.ctrlKey || e.metaKey) || e.altKey || e.target.matches?.('input[type="number"], input[type="text"], textarea')) return;
    const key = e.key.toLowerCase();
    if (key === 'z' && !e.shiftKey) { e.preventDefault(); this.#undo(); }
    if ((key === 'z' && e.shiftKey) || key === 'y') { e.preventDefault(); this.#redo(); }
  }

  async #share() {
    const button = $('share');
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = 'Copied';
    } catch {
      prompt('Link to this state:', location.href); // the clipboard may be unavailable
    }
    setTimeout(() => { button.textContent = 'Copy link'; }, 1600);
  }

  #live() {
    const chip = $('link');
    const show = () => {
      const { local, state, why } = this.decoder;
      const live = state === 'live';
      if (live && this.#owing) this.#render();
      chip.dataset.state = live ? 'live' : 'reconnecting';
      chip.textContent = live ? 'live' : 'reconnecting';
      if (local) chip.title = `Decoding in this browser: ${local.picture.toFixed(1)} ms per image.`;
      else chip.title = live ? `Decoding on the server.${why ? ` ${why}` : ''}` : 'Connection lost. Images load one by one until it is back.';
      $('play').dataset.decoder = local ? 'browser' : 'server';
    };
    this.decoder.addEventListener('state', show);
  }
}

const root = document.getElementById('play');
const data = document.getElementById('play-data');
if (root && data) start(root, JSON.parse(data.textContent));

/** start opens the page with the server as its store, or, in a frozen page, with the page's own data. */
async function start(root, data) {
  if (!globalThis.frozen) return new Play(root, data, new (await import('./server.js')).Server(data)).begin();
  const { Frozen } = await import('./frozen.js');
  data = Frozen.restore(data, location.hash);
  const store = await Frozen.open(data, globalThis.frozen);
  const play = new Play(root, data, store);
  store.download(play);
  await play.begin();
  store.attach(play);
  import('./tour.js').then(({ first }) => first()); // the live page uses visit.js
}
