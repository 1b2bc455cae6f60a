// Side by side: the same pair in another checkpoint, or in this run at another step. Each row swaps one factor: the slots of its group in each
// model, or the same slots if it is the same run.

import { format, natural, putAll } from './codes.js';
import { Names } from './names.js';

export class Beside {
  #run = 0; // number of the newest draw; older ones stop
  #name = ''; // of the other checkpoint
  #same = false; // whether it is of the same run, whose slots mean the same

  constructor(section, app) {
    Object.assign(this, { section, app });
    this.table = section.querySelector('table');
    this.said = section.querySelector('[data-part="said"]');
    this.other = section.querySelector('#beside-other');
    this.step = section.querySelector('#beside-step');
    this.steps = this.step?.dataset.steps.split('.').map(Number) ?? [];
    this.other?.addEventListener('change', () => this.#choose(this.other.value, false));
    this.step?.addEventListener('input', () => this.#scrub());
    this.#tellStep();
    if (this.other?.value) this.#whenSeen(() => this.#choose(this.other.value, false));
  }

  /** whenSeen calls work once the section is nearly in view, to keep the other model out of the first view. */
  #whenSeen(work) {
    const watch = new IntersectionObserver((seen) => {
      if (!seen.some((e) => e.isIntersecting)) return;
      watch.disconnect();
      if (!this.#name) work();
    }, { rootMargin: '200px' });
    watch.observe(this.section);
  }

  #scrub() {
    this.#tellStep();
    if (this.other) this.other.value = '';
    this.#choose(`${this.section.dataset.run}@${this.steps[this.step.value]}`, true);
  }

  #tellStep() {
    if (!this.step) return;
    const text = this.steps[this.step.value].toLocaleString('en');
    this.step.nextElementSibling.textContent = text;
    this.step.setAttribute('aria-valuetext', `step ${text}`);
  }

  #choose(name, same) {
    this.#name = name;
    this.#same = same;
    this.draw(this.app.state);
  }

  /** draw shows a state's pair in both models. */
  async draw(state) {
    const run = ++this.#run;
    if (!this.#name) { this.table.hidden = true; this.said.textContent = ''; return; }
    if (state.a.index < 0 || state.b.index < 0) { this.said.textContent = 'Choose two images from the dataset to compare them side by side.'; return; }
    try {
      this.said.textContent = 'Loading …';
      const other = await this.app.store.other(this.#name, state.a.index, state.b.index, this.#same, (text) => { if (run === this.#run) this.said.textContent = text; });
      if (run !== this.#run) return;
      const { slots, groups, names } = this.app;
      const worlds = [
        { slots, groups, names, a: state.a, b: state.b, decoder: this.app.decoder, decode: (tuples) => this.app.decoder.decode('beside', tuples) },
        this.#same ? { ...other, slots, groups, names } : { ...other, names: new Names(other.slots, this.app.text) },
      ].map((w) => ({ ...w, a: { ...state.a, ...w.a }, b: { ...state.b, ...w.b } }));
      await Promise.all(worlds.map((w) => this.#decode(w)));
      if (run === this.#run) await this.#write(worlds, run);
    } catch (err) {
      if (run === this.#run) this.said.textContent = err.message;
    }
  }

  /** decode decodes A, B and the swap of each group of a world, and gives it a decoder that returns them. */
  async #decode(world) {
    const tuples = [world.a.codes, world.b.codes, ...world.groups.map((g) => putAll(world.a.codes, g.slots, world.b.codes))];
    const pictures = await world.decode(tuples);
    const byName = new Map(tuples.map((t, j) => [format(t), pictures[j]]));
    world.decoder = { peek: (codes) => byName.get(format(codes)) };
  }

  async #write(worlds, run) {
    const head = this.table.tHead;
    head.querySelector('[data-part="this"]').textContent = this.section.dataset.title;
    head.querySelector('[data-part="other"]').textContent = worlds[1].title;
    const { factors } = this.app.data.dataset;
    const rows = [this.#reconstructions('A', worlds, 'a'), this.#reconstructions('B', worlds, 'b')];
    for (const factor of natural(factors.length)) {
      const groups = worlds.map((w) => w.groups.find((g) => g.factor === factor && g.owned));
      if (!groups.some(Boolean)) continue;
      const found = await Promise.all(worlds.map((w, at) => groups[at] && this.app.facts.of(w.a, w.b, w.a.codes, putAll(w.a.codes, groups[at].slots, w.b.codes), w)));
      if (run !== this.#run) return;
      rows.push(this.#row(factor, worlds, groups, found));
    }
    this.table.tBodies[0].replaceChildren(...rows);
    this.table.hidden = false;
    this.said.textContent = rows.length > 2 ? '' : 'No factor owns a slot in either model, so there are no swaps to compare.';
  }

  /** reconstructions returns the row with a side's original and its reconstructions by both models. */
  #reconstructions(name, worlds, side) {
    const tr = document.createElement('tr');
    const th = Object.assign(document.createElement('th'), { scope: 'row', textContent: `${name}, reconstructed` });
    const real = document.createElement('td');
    const original = Object.assign(new Image(), { className: 'pixels', alt: `Original of ${name}`, src: this.app.originalOf(this.app.state[side].original) });
    real.append(original);
    tr.append(th, real, ...worlds.map((w) => {
      const td = document.createElement('td');
      const both = Object.assign(document.createElement('div'), { className: 'one' });
      this.#picture(both, w.decoder.peek(w[side].codes), `${name}, reconstructed`);
      both.append(w[side].psnr ? `PSNR ${w[side].psnr.toFixed(1)} dB` : '');
      td.append(both);
      return td;
    }));
    return tr;
  }

  #picture(to, pixels, label) {
    const canvas = document.createElement('canvas');
    Object.assign(canvas, { className: 'pixels', width: this.app.shape.w, height: this.app.shape.h, role: 'img' });
    canvas.setAttribute('aria-label', label);
    to.append(canvas);
    this.app.paint(canvas, pixels);
  }

  #row(factor, worlds, groups, found) {
    const tr = document.createElement('tr');
    const cell = (tag) => { const e = document.createElement(tag); tr.append(e); return e; };
    const { name } = this.app.data.dataset.factors[factor];
    const th = cell('th');
    th.scope = 'row';
    th.textContent = name;
    const truth = found.find((f) => f?.truth)?.truth;
    const real = cell('td');
    if (truth) this.#picture(real, truth.pixels, `True image of A with B’s ${name}`);
    else real.textContent = '–';
    worlds.forEach((w, at) => {
      const td = cell('td');
      if (!groups[at]) { td.textContent = 'owns no slot'; td.className = 'quiet'; return; }
      const both = Object.assign(document.createElement('div'), { className: 'one' });
      td.append(both);
      this.#picture(both, w.decoder.peek(putAll(w.a.codes, groups[at].slots, w.b.codes)), `A with B’s ${name}`);
      const fact = Object.assign(document.createElement('p'), { className: 'fact' });
      both.append(fact);
      this.app.facts.write(fact, found[at], factor);
    });
    return tr;
  }
}
