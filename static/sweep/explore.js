// The explore page of a sweep: runs as lines over parallel axes, linked with the table; limits on axes filter both.
import { count, plural, value } from '../shared/format.js';

const narrow = 140; // minimum px between axes
const high = 260;
const top = 34;
const bottom = 22;
const mostCompared = 200; // limit of runs in one comparison

const element = (name, attributes = {}, text = '') => {
  const e = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.textContent = text;
  return e;
};

/** y returns the y coordinate of a share of an axis. */
const y = (share) => top + (high - top - bottom) * (1 - share);

/** path returns the path of a run's line; it breaks at axes of hyperparameters that the run does not have. */
export function path(at, wide) {
  let d = '';
  let on = false;
  at.forEach((share, i) => {
    if (share < 0) on = false;
    else {
      d += `${on ? 'L' : 'M'}${wide / 2 + i * wide} ${Math.round(y(share) * 10) / 10}`;
      on = true;
    }
  });
  return d;
}

/** within reports whether a line lies within the limits of every axis, [low, high] in shares. A limited axis excludes runs without its hyperparameter. */
export function within(at, limits) {
  return limits.every(([low, high], i) => (low <= 0 && high >= 1) || (at[i] >= low && at[i] <= high));
}

/** Coordinates draws the lines and links them with the table's rows. */
class Coordinates {
  constructor(section) {
    this.section = section;
    this.data = JSON.parse(section.querySelector('#coordinates-data').textContent);
    this.rows = new Map([...section.querySelectorAll('[data-run]')].map((row) => [row.dataset.run, row]));
    this.lines = new Map();
    this.limits = this.data.axes.map(() => [0, 1]);
    if (this.data.lines.length === 0) return;
    this.#draw();
    this.#limit();
    this.#follow(section);
    this.#show();
  }

  #draw() {
    const { axes, lines } = this.data;
    const area = this.section.querySelector('[data-part="plot"]');
    const wide = Math.max(narrow, Math.floor(area.clientWidth / axes.length));
    const svg = element('svg', { viewBox: `0 0 ${axes.length * wide} ${high}`, width: axes.length * wide, height: high, role: 'img', 'aria-label': `${plural(lines.length, 'run', 'runs')} over ${axes.map((a) => a.title).join(', ')}; the table below has the same data` });
    for (const line of lines) {
      const p = element('path', { d: path(line.at, wide), class: `k-h${line.shade}`, 'data-line': line.run });
      this.lines.set(line.run, p);
      svg.append(p);
    }
    axes.forEach((axis, i) => {
      const x = wide / 2 + i * wide;
      svg.append(element('line', { x1: x, x2: x, y1: y(0), y2: y(1) }), element('text', { x, y: 14, class: 'name' }, axis.title));
      const marks = axis.levels?.map((text, j) => [(j + 0.5) / axis.levels.length, text]) ?? [[0, value(axis.low)], [1, value(axis.high)]];
      for (const [share, text] of marks) svg.append(element('text', { x: x + 8, y: y(share) + 4, 'text-anchor': 'start' }, text));
    });
    area.replaceChildren(svg);
  }

  /** limit makes two selects for each axis: from and to. */
  #limit() {
    const area = this.section.querySelector('[data-part="limits"]');
    area.replaceChildren(
      ...this.data.axes.map((axis, i) => {
        const box = document.createElement('fieldset');
        const name = document.createElement('legend');
        name.textContent = axis.title;
        const steps = axis.levels?.map((text, j) => [j / axis.levels.length, (j + 1) / axis.levels.length, text]) ?? Array.from({ length: 10 }, (_, j) => [j / 10, (j + 1) / 10, null]);
        const select = (word, which) => {
          const s = document.createElement('select');
          s.setAttribute('aria-label', `${axis.title} ${word}`);
          steps.forEach(([from, to, text], j) => s.append(new Option(`${word} ${text ?? value(axis.low + (axis.high - axis.low) * (which === 0 ? from : to))}`, which === 0 ? from : to, false, which === 0 ? j === 0 : j === steps.length - 1)));
          s.onchange = () => {
            this.limits[i][which] = Number(s.value);
            this.#show();
          };
          return s;
        };
        box.append(name, select('from', 0), select('to', 1));
        return box;
      }),
    );
  }

  /** follow highlights the line and the row under the pointer or the focus. */
  #follow(section) {
    const hold = (e) => {
      const run = e.target.closest?.('[data-line], [data-run]');
      const id = run?.dataset.line ?? run?.dataset.run;
      for (const [key, line] of this.lines) {
        line.classList.toggle('held', key === id);
        if (key === id) line.parentNode.insertBefore(line, line.parentNode.querySelector('line'));
        this.rows.get(key)?.classList.toggle('held', key === id);
      }
    };
    section.addEventListener('pointerover', hold);
    section.addEventListener('focusin', hold);
    section.addEventListener('click', (e) => {
      const id = e.target.closest?.('[data-line]')?.dataset.line;
      if (id) this.rows.get(id)?.scrollIntoView({ block: 'center', behavior: 'smooth' });
    });
  }

  /** show hides runs outside the limits; without limits, runs without a score stay in the table. */
  #show() {
    const limited = this.limits.some(([a, b]) => a > 0 || b < 1);
    const inside = new Set(this.data.lines.filter((l) => within(l.at, this.limits)).map((l) => l.run));
    for (const [run, line] of this.lines) line.classList.toggle('out', !inside.has(run));
    for (const [run, row] of this.rows) row.hidden = limited && !inside.has(run);
    const shown = this.section.querySelector('[data-part="shown"]');
    shown.textContent = limited ? `${count(inside.size)} of ${plural(this.data.lines.length, 'run', 'runs')} within the limits.` : `${plural(this.data.lines.length, 'run', 'runs')}.`;
    const link = this.section.querySelector('[data-part="compare"]');
    link.hidden = inside.size === 0;
    if (limited) link.href = `/compare?runs=${[...inside].slice(0, mostCompared).join(',')}`;
  }
}

if (typeof document !== 'undefined') {
  for (const section of document.querySelectorAll('[data-part="coordinates"]')) new Coordinates(section);
  for (const form of document.querySelectorAll('[data-part="view"]')) {
    form.querySelector('button').hidden = true;
    form.onchange = () => form.requestSubmit();
  }
}
