// The table of codes: groups and slots, two rows of tokens, the swaps of groups and of single slots, the differences. Arrow keys move through
// it, also when narrow pages transpose it.

import { difference, percent, put, putAll, swaps } from './codes.js';
import { groupName, label, numbers, slotName, tell } from './names.js';
import { heat, inkOf, paint, spotlight } from './pixels.js';

const LONG = 9; // a group name with more letters is set smaller over a single column
const LATE = 120; // ms after which images that are still missing are faded

export class Grid {
  constructor(table, shape, app) {
    Object.assign(this, { table, shape, app });
    const cells = (selector) => [...table.querySelectorAll(selector)];
    const bySlot = (selector) => {
      const out = [];
      for (const e of cells(selector)) out[Number(e.closest('[data-i]').dataset.i)] = e;
      return out;
    };
    this.groupheads = cells('.grouphead');
    this.heads = bySlot('.slothead');
    this.rows = { a: bySlot('tr[data-row="a"] .token'), b: bySlot('tr[data-row="b"] .token') };
    this.groupshots = cells('.groupswaps .shot');
    this.groupfacts = cells('.groupswaps .fact');
    this.trues = cells('.groupswaps canvas.true');
    this.shots = bySlot('.swaps .shot');
    this.slotfacts = bySlot('.swaps .fact');
    this.maps = bySlot('.diffs canvas');
    this.changed = bySlot('.diffs .changed');
    this.columns = cells('[data-i]');
    const order = app.groups.flatMap((g) => g.slots);
    const wide = (all) => app.groups.flatMap((g, at) => g.slots.map(() => all[at]));
    const long = (all) => order.map((i) => all[i]);
    this.matrix = [wide(this.groupheads), long(this.heads), long(this.rows.a), long(this.rows.b), wide(this.groupshots), long(this.shots)];
    this.order = order;
    this.#listen(cells('[data-show]'));
    this.#rove(this.rows.a[order[0]]);
  }

  #listen(names) {
    const { app, table } = this;
    const shows = (shot, take, tuple, text) => {
      shot.addEventListener('click', (e) => { if (!e.ctrlKey && !e.metaKey) { e.preventDefault(); take(); } });
      shot.addEventListener('pointerenter', (e) => e.pointerType === 'mouse' && app.look(tuple(), text));
      shot.addEventListener('pointerleave', () => app.lookAway());
    };
    this.heads.forEach((head, i) => head.addEventListener('click', (e) => { e.preventDefault(); app.choose(i, true); }));
    this.shots.forEach((shot, i) => shows(shot, () => app.takeSwap(i), () => put(app.state.codes, i, app.state.bcodes[i]), `A with slot ${i} of B`));
    this.groupshots.forEach((shot, g) => shows(shot, () => app.takeGroup('a', g), () => this.#groupTuple(app.state, g), `A with B’s ${groupName(app.groups[g])}`));
    this.names = names;
    for (const name of names) name.addEventListener('click', () => app.showRow(name.dataset.show));
    table.addEventListener('keydown', (e) => this.#key(e));
    table.addEventListener('focusin', (e) => this.#focused(e.target));
  }

  #groupTuple({ codes, bcodes }, g) { return putAll(codes, this.app.groups[g].slots, bcodes); }

  /** view sets which swaps a narrow page shows. */
  view(name) {
    this.table.dataset.view = name;
    for (const button of this.table.closest('.slots').querySelectorAll('button[data-view]')) button.setAttribute('aria-pressed', String(button.dataset.view === name));
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
    this.app.choose(this.order[at[1]]);
    this.app.hands.hover(element);
  }

  #key(e) {
    const at = this.#at(e.target);
    if (!at || e.altKey || e.ctrlKey || e.metaKey) return;
    const lying = getComputedStyle(this.table.tBodies[0]).display === 'flex'; // transposed
    const arrows = lying
      ? { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }
      : { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (arrows[e.key]) this.#go(at, ...arrows[e.key]);
    else if (e.key === 'Home') this.matrix[at[0]][0].focus();
    else if (e.key === 'End') this.matrix[at[0]].at(-1).focus();
    else if (e.key === 'Enter' || e.key === ' ') {
      if (!e.repeat && e.target.dataset.kind) this.app.hands.press(e.target);
      else if (!e.repeat) e.target.click();
    } else return;
    e.preventDefault();
  }

  /** go moves the focus to the next other visible cell: a group's cell spans its slots, and phones hide rows. */
  #go([r, i], down, right) {
    const from = this.matrix[r][i];
    for (;;) {
      r += down;
      i += right;
      const to = this.matrix[r]?.[i];
      if (!to) return;
      if (to !== from && to.checkVisibility()) return to.focus();
    }
  }

  /** draw updates everything but images: codes, names, and which are equal. */
  draw(state, moved) {
    for (const name of this.names) name.setAttribute('aria-pressed', String(name.dataset.show === this.app.row()));
    this.groupheads.forEach((head, g) => {
      const name = groupName(this.app.groups[g]);
      const factor = head.querySelector('.factor');
      tell(factor, name);
      factor.toggleAttribute('data-long', [...name].length > LONG);
    });
    this.heads.forEach((head, i) => tell(head.querySelector('.visually-hidden'), slotName(this.app.slots[i])));
    for (const [row, codes, name] of [['a', state.codes, 'A'], ['b', state.bcodes, 'B']]) {
      this.rows[row].forEach((token, i) => {
        const same = state.codes[i] === state.bcodes[i];
        token.dataset.code = codes[i];
        this.app.names.write(token.querySelector('.name'), i, codes[i]);
        token.toggleAttribute('data-same', same);
        const base = row === 'a' ? state.a.codes : state.b.codes;
        token.toggleAttribute('data-edited', codes[i] !== base[i]);
        token.toggleAttribute('data-moved', row === 'a' && !!moved?.has(i));
        label(token, [
          `${token.querySelector('.name').textContent}: ${name}, slot ${i}${this.app.named(i)}`, same ? 'same in both' : '', codes[i] !== base[i] ? `was ${this.app.names.say(i, base[i])}` : '',
        ].filter(Boolean).join(', ')); // starts with exactly the visible text
      });
    }
    this.shots.forEach((shot, i) => {
      const same = state.codes[i] === state.bcodes[i];
      shot.toggleAttribute('data-same', same);
      label(shot, same ? `Slot ${i} is the same in A and B` : `A with slot ${i} of B; apply to A`);
    });
    this.groupshots.forEach((shot, g) => {
      const group = this.app.groups[g];
      const same = group.slots.every((i) => state.codes[i] === state.bcodes[i]);
      shot.toggleAttribute('data-same', same);
      this.groupheads[g].toggleAttribute('data-same', same);
      label(shot, same ? `${groupName(group)} is the same in A and B` : `A with B’s ${groupName(group)}, ${numbers(group.slots)}; apply to A`);
    });
  }

  flip(slots) { this.rows.a.forEach((token, i) => token.toggleAttribute('data-flipped', slots.has(i))); }

  #late = 0;
  #drawn = false; // until then the table has the server's images, which are up to date

  /** wait marks that images are missing; they are faded if it takes longer than LATE. */
  wait(on) {
    clearTimeout(this.#late);
    this.table.toggleAttribute('data-waiting', on);
    if (on && this.#drawn) this.#late = setTimeout(() => this.table.toggleAttribute('data-late', true), LATE);
    else this.table.removeAttribute('data-late');
  }

  /** showing paints swaps, differences and A's spotlights, slot by slot; pictures returns the pixels of a tuple. */
  *showing(state, pictures) {
    const { codes, bcodes } = state;
    const a = pictures(codes);
    const there = swaps(codes, bcodes).map(pictures);
    const forward = [];
    for (const p of there) {
      forward.push(difference(a, p, this.shape.c));
      yield;
    }
    const scale = Math.max(32, ...forward.map((d) => d.most));
    this.ink ??= inkOf(this.table);
    this.largest = forward.map((d, i) => [d.changed, i]).sort((x, y) => y[0] - x[0] || x[1] - y[1]).map(([, i]) => i);
    for (const [g, shot] of this.groupshots.entries()) {
      const tuple = this.#groupTuple(state, g);
      paint(shot.querySelector('.pixels'), pictures(tuple), this.shape, tuple.join('.'));
      yield;
    }
    for (const [i, d] of forward.entries()) {
      const same = codes[i] === bcodes[i];
      paint(this.shots[i].querySelector('.pixels'), there[i], this.shape, put(codes, i, bcodes[i]).join('.'));
      heat(this.maps[i], d.map, scale, this.shape, this.ink);
      label(this.maps[i], same ? 'No difference' : `${percent(d.changed)} of pixels changed`);
      tell(this.changed[i], same ? 'same' : percent(d.changed));
      spotlight(this.rows.a[i].querySelector('canvas'), a, d.map, scale, this.shape);
      yield;
    }
    this.#drawn = true;
    this.wait(false);
  }

  /** showingBack paints B's spotlights: B with each slot of A. */
  *showingBack({ codes, bcodes }, pictures) {
    const b = pictures(bcodes);
    const backward = swaps(bcodes, codes).map((t) => difference(b, pictures(t), this.shape.c));
    const scale = Math.max(32, ...backward.map((d) => d.most));
    for (const [i, d] of backward.entries()) {
      yield;
      spotlight(this.rows.b[i].querySelector('canvas'), b, d.map, scale, this.shape);
    }
  }

  /** choose marks the selected slot. */
  choose(slot) { for (const cell of this.columns) if (cell.matches('td, th')) cell.toggleAttribute('data-chosen', Number(cell.dataset.i) === slot); }

  mark(source, over) {
    const slots = over?.group === undefined ? [over?.slot] : this.app.groups[over.group].slots;
    for (const row of ['a', 'b']) {
      this.rows[row].forEach((token, i) => {
        const held = source?.kind === 'cell' && source.row === row && source.slot === i;
        token.toggleAttribute('data-held', held);
        token.setAttribute('aria-pressed', String(held));
        token.toggleAttribute('data-over', over?.row === row && slots.includes(i));
      });
    }
    this.groupheads.forEach((head, g) => {
      const held = source?.kind === 'group' && source.group === g;
      head.toggleAttribute('data-held', held);
      head.setAttribute('aria-pressed', String(held));
    });
  }
}
