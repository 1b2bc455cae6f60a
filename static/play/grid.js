// The table of codes: two rows of tokens, the swaps, the differences. Arrow keys move through it, whichever way it lies.

import { difference, percent, put, swaps } from './codes.js';
import { canvasFor, heat, inkOf, paint, spotlight } from './pixels.js';

export class Grid {
  constructor(table, shape, app) {
    Object.assign(this, { table, shape, app });
    const cells = (selector) => [...table.querySelectorAll(selector)];
    this.heads = cells('.slothead');
    this.rows = { a: cells('tr[data-row="a"] .token'), b: cells('tr[data-row="b"] .token') };
    this.shots = cells('.swaps .shot');
    for (const img of cells('.swaps img')) canvasFor(img, shape);
    this.maps = cells('.diffs canvas');
    this.changed = cells('.diffs .changed');
    this.columns = cells('[data-i]');
    this.matrix = [this.heads, this.rows.a, this.rows.b, this.shots];
    this.heads.forEach((head, i) => head.addEventListener('click', (e) => { e.preventDefault(); app.choose(i, true); }));
    this.shots.forEach((shot, i) => {
      shot.addEventListener('click', (e) => { if (!e.ctrlKey && !e.metaKey) { e.preventDefault(); app.takeSwap(i); } });
      shot.addEventListener('pointerenter', (e) => e.pointerType === 'mouse' && app.look(put(app.state.codes, i, app.state.bcodes[i]), `A with slot ${i} of B`));
      shot.addEventListener('pointerleave', () => app.lookAway());
    });
    this.names = cells('[data-show]');
    for (const name of this.names) name.addEventListener('click', () => app.showRow(name.dataset.show));
    table.addEventListener('keydown', (e) => this.#key(e));
    table.addEventListener('focusin', (e) => this.#focused(e.target));
    this.#rove(this.rows.a[0]);
  }

  #at(element) {
    for (const [r, row] of this.matrix.entries()) {
      const i = row.indexOf(element);
      if (i >= 0) return [r, i];
    }
    return null;
  }

  #rove(to) {
    for (const row of this.matrix) for (const cell of row) cell.tabIndex = cell === to ? 0 : -1;
  }

  #focused(element) {
    const at = this.#at(element);
    if (!at) return;
    this.#rove(element);
    this.app.choose(at[1]);
    this.app.hands.hover(element);
  }

  #key(e) {
    const at = this.#at(e.target);
    if (!at || e.altKey || e.ctrlKey || e.metaKey) return;
    let [r, i] = at;
    const lying = getComputedStyle(this.table.tBodies[0]).display === 'flex'; // rows and columns have changed places
    const arrows = lying
      ? { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }
      : { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (arrows[e.key]) {
      r = Math.max(0, Math.min(this.matrix.length - 1, r + arrows[e.key][0]));
      i = Math.max(0, Math.min(this.heads.length - 1, i + arrows[e.key][1]));
    } else if (e.key === 'Home') i = 0;
    else if (e.key === 'End') i = this.heads.length - 1;
    else if (e.key === 'Enter' || e.key === ' ') {
      e.preventDefault();
      if (e.repeat) return;
      if (e.target.dataset.kind) this.app.hands.press(e.target);
      else e.target.click();
      return;
    } else return;
    e.preventDefault();
    this.matrix[r][i].focus();
  }

  /** draw writes what is known without pictures: codes, which are the same, names. */
  draw(state, moved) {
    for (const name of this.names) name.setAttribute('aria-pressed', String(name.dataset.show === this.app.row()));
    for (const [row, codes, name] of [['a', state.codes, 'A'], ['b', state.bcodes, 'B']]) {
      this.rows[row].forEach((token, i) => {
        const same = state.codes[i] === state.bcodes[i];
        token.dataset.code = codes[i];
        token.querySelector('.code').textContent = this.app.text(codes[i]);
        token.toggleAttribute('data-same', same);
        const base = row === 'a' ? state.a.codes : state.b.codes;
        token.toggleAttribute('data-edited', codes[i] !== base[i]);
        token.toggleAttribute('data-moved', row === 'a' && !!moved?.has(i));
        token.setAttribute('aria-label', [
          `${name}, slot ${i}${this.app.named(i)}: code ${this.app.text(codes[i])}`, same ? 'same in both' : '', codes[i] !== base[i] ? `was ${this.app.text(base[i])}` : '',
        ].filter(Boolean).join(', '));
      });
    }
    this.shots.forEach((shot, i) => {
      const same = state.codes[i] === state.bcodes[i];
      shot.toggleAttribute('data-same', same);
      shot.setAttribute('aria-label', same ? `Slot ${i} is the same in A and B` : `A with slot ${i} of B; put it into A`);
    });
  }

  flip(slots) { this.rows.a.forEach((token, i) => token.toggleAttribute('data-flipped', slots.has(i))); }

  wait(on) { this.table.toggleAttribute('data-waiting', on); }

  /** show paints swaps, differences and spotlights; pictures gives the pixels of a tuple. */
  show(state, pictures) {
    const { codes, bcodes } = state;
    const [a, b] = [pictures(codes), pictures(bcodes)];
    const there = swaps(codes, bcodes).map(pictures);
    const back = swaps(bcodes, codes).map(pictures);
    const forward = there.map((p) => difference(a, p, this.shape.c));
    const backward = back.map((p) => difference(b, p, this.shape.c));
    const scale = Math.max(32, ...forward.map((d) => d.most));
    const scaleB = Math.max(32, ...backward.map((d) => d.most));
    const ink = inkOf(this.table);
    this.order = forward.map((d, i) => [d.changed, i]).sort((x, y) => y[0] - x[0] || x[1] - y[1]).map(([, i]) => i);
    forward.forEach((d, i) => {
      const same = codes[i] === bcodes[i];
      paint(this.shots[i].querySelector('canvas'), there[i], this.shape, put(codes, i, bcodes[i]).join('.'));
      heat(this.maps[i], d.map, scale, this.shape, ink);
      this.maps[i].setAttribute('aria-label', same ? 'No difference' : `${percent(d.changed)} of the pixels change`);
      this.changed[i].textContent = same ? 'same' : percent(d.changed);
      spotlight(this.rows.a[i].querySelector('canvas'), a, d.map, scale, this.shape);
      spotlight(this.rows.b[i].querySelector('canvas'), b, backward[i].map, scaleB, this.shape);
    });
    this.wait(false);
  }

  /** label writes the headings of the columns. */
  label(slots, images) {
    slots.forEach((s, i) => {
      this.heads[i].querySelector('.factor').textContent = s.name;
      this.heads[i].classList.toggle('unclear', s.name === 'mixed' || s.name === 'unused');
      if (s.known) {
        this.heads[i].querySelector('.shares').replaceWith(factorBars(s.shares));
        this.heads[i].title = `Slot ${i} takes ${s.used} codes on ${images.toLocaleString('en')} images.` +
          (s.shares.length ? ` Information about each factor, above chance: ${s.shares.map((f) => `${f.factor} ${Math.round(100 * f.share)}%`).join(', ')}` : '');
      }
    });
  }

  choose(slot) { for (const cell of this.columns) if (cell.matches('td, th')) cell.toggleAttribute('data-chosen', Number(cell.dataset.i) === slot); }

  mark(source, over) {
    for (const row of ['a', 'b']) {
      this.rows[row].forEach((token, i) => {
        const held = source?.kind === 'cell' && source.row === row && source.slot === i;
        token.toggleAttribute('data-held', held);
        token.setAttribute('aria-pressed', String(held));
        token.toggleAttribute('data-over', over?.row === row && over?.slot === i);
      });
    }
  }
}

/** factorBars draws what a slot tells of each factor, a bar for each. */
function factorBars(shares) {
  const svg = (name, values) => {
    const e = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(values)) e.setAttribute(key, value);
    return e;
  };
  const bars = svg('svg', { class: 'shares', 'aria-hidden': 'true', viewBox: `0 0 ${4 * Math.max(1, shares.length)} 10`, preserveAspectRatio: 'none' });
  bars.append(...shares.map((f, i) => svg('rect', { x: 4 * i, y: 9.5 - 9.5 * f.share, width: 3, height: 0.5 + 9.5 * f.share })));
  return bars;
}
