// The comparison of runs: curves of all groups in one plot, swaps of one pair side by side, and the list to choose from.
import { count, value } from '../shared/format.js';
import { rest, Zoom } from '../shared/zoom.js';

const colours = 9; // of the slots' palette

/** colour resolves a custom property to what the canvas understands. */
function colour(name) {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const out = getComputedStyle(probe).color;
  probe.remove();
  return out;
}

const see = (rgb, share) => `color-mix(in srgb, ${rgb} ${share}%, transparent)`;

/** join lines up columns of unequal steps; what a line lacks at a step is left out, not drawn as a gap. */
export function join(lines) {
  const steps = [...new Set(lines.flatMap((l) => l.steps))].sort((a, b) => a - b);
  const at = new Map(steps.map((s, i) => [s, i]));
  const columns = lines.map((l) => {
    const out = new Array(steps.length).fill(undefined);
    l.steps.forEach((s, i) => (out[at.get(s)] = l.values[i]));
    return out;
  });
  return [steps, ...columns];
}

/** Curves draws one series of every group. */
class Curves {
  #plot = null;
  #ticket = 0;
  #answer = null;
  #hidden = new Set(); // labels
  #range = null; // steps in view, or null for all
  #timer = 0;

  constructor(section) {
    const data = JSON.parse(section.querySelector('#curves-data').textContent);
    this.query = data.query;
    this.form = section.querySelector('[data-part="curve-tools"]');
    this.area = section.querySelector('[data-part="overlay"]');
    this.legend = section.querySelector('[data-part="legend"]');
    this.foot = section.querySelector('[data-part="curve-foot"]');
    if (!this.form) return;
    this.form.hidden = false;
    this.form.onsubmit = (e) => e.preventDefault();
    const f = this.form.elements;
    const asked = new URLSearchParams(location.search);
    if (data.series.includes(asked.get('series'))) f.series.value = asked.get('series');
    if (Number(asked.get('smooth')) > 0) this.#smoothed(Number(asked.get('smooth')));
    f.series.onchange = () => this.load();
    f.smooth.oninput = () => this.smooth(Number(f.smooth.value));
    f.log.onchange = f.members.onchange = () => this.draw();
    f.reset.onclick = () => this.#show(null);
    f.reset.disabled = true;
    addEventListener('keydown', (e) => this.#key(e));
    new ResizeObserver(() => this.#fit()).observe(this.area);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
    new Zoom(this.area, { u: () => this.#plot, zoomed: () => this.#range !== null, whole: () => this.#whole(), least: () => 2, show: (range) => this.#show(range) });
    section.addEventListener('click', (e) => this.area.contains(e.target) || rest(this.#plot));
    this.load();
  }

  #whole() {
    const [steps] = this.#plot.data;
    return [steps[0], steps[steps.length - 1]];
  }

  /** show brings a range of steps into view, or everything. */
  #show(range) {
    this.#range = range;
    this.form.elements.reset.disabled = !range;
    this.#plot?.setData(this.#plot.data);
  }

  #rangeX(lo, hi) {
    if (this.#range) return this.#range;
    return lo === hi ? [0, 2 * hi || 1] : [lo, hi];
  }

  #key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest('input, select, textarea')) return;
    const f = this.form.elements;
    if (e.key === '[' || e.key === ']') this.smooth(Number(f.smooth.value) + (e.key === '[' ? -0.05 : 0.05));
    else if (e.key === 'l') f.log.click();
  }

  #smoothed(alpha) {
    alpha = Math.min(0.99, Math.max(0, Math.round(alpha * 100) / 100));
    const f = this.form.elements;
    f.smooth.value = alpha;
    f['smooth-now'].value = alpha === 0 ? 'off' : alpha.toFixed(2);
  }

  /** keep puts what is drawn into the page's address, leaving out what is usual. */
  #keep() {
    const f = this.form.elements;
    const url = new URL(location.href);
    const set = (name, value, usual) => (value === usual ? url.searchParams.delete(name) : url.searchParams.set(name, value));
    set('series', f.series.value, f.series.options[0].value);
    set('smooth', f.smooth.value, '0');
    history.replaceState(history.state, '', `${url.pathname}?${url.searchParams.toString().replaceAll('%2C', ',')}`);
  }

  smooth(alpha) {
    this.#smoothed(alpha);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.load(), 150);
  }

  async load() {
    const f = this.form.elements;
    const ticket = ++this.#ticket;
    this.#keep();
    const q = new URLSearchParams(this.query);
    q.set('series', f.series.value);
    if (Number(f.smooth.value) > 0) q.set('smooth', f.smooth.value);
    this.foot.textContent = 'Reading every point…';
    const answer = await fetch(`/api/compare/curves?${q}`).catch(() => null);
    const body = await answer?.json().catch(() => null);
    if (ticket !== this.#ticket) return;
    if (!answer?.ok || !body) {
      this.foot.textContent = body?.error ?? 'The curves could not be read; the server does not answer.';
      return;
    }
    this.#answer = body;
    this.#names();
    this.draw();
  }

  /** names draws the legend: one switch for each group. */
  #names() {
    this.legend.replaceChildren(
      ...this.#answer.groups.map((g) => {
        const label = document.createElement('label');
        const box = document.createElement('input');
        box.type = 'checkbox';
        box.checked = !this.#hidden.has(this.#key1(g));
        box.onchange = () => {
          this.#hidden[box.checked ? 'delete' : 'add'](this.#key1(g));
          this.draw();
        };
        const swatch = document.createElement('span');
        swatch.className = g.dashed ? 'swatch dashed' : 'swatch';
        swatch.dataset.slot = g.color;
        label.append(box, swatch, this.#title(g));
        return label;
      }),
    );
  }

  #key1 = (g) => `${g.section ?? ''} ${g.dataset} ${g.label}`;

  #title(g) {
    const many = new Set(this.#answer.groups.map((o) => o.dataset)).size > 1;
    const n = g.members.length;
    return `${g.label}${many ? ` · ${g.dataset}` : ''} (${n === 1 ? '1 run' : `${n} runs`})`;
  }

  draw() {
    this.#plot?.destroy();
    this.#plot = null;
    const groups = (this.#answer?.groups ?? []).filter((g) => !this.#hidden.has(this.#key1(g)));
    if (groups.length === 0) {
      this.foot.textContent = this.#answer ? 'Nothing is chosen, or none of these runs has measured this series.' : '';
      return;
    }
    const log = this.form.elements.log.checked;
    const { lines, series, bands, dropped } = this.#lines(groups, log);
    const ink = colour('--quiet');
    const rule = colour('--rule');
    const font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const axis = { stroke: ink, font, grid: { stroke: rule, width: 1 }, ticks: { stroke: rule, width: 1 } };
    this.#plot = new uPlot(
      {
        width: this.area.clientWidth, height: this.area.clientHeight, series: [{ label: 'step' }, ...series], bands,
        scales: { x: { time: false, range: (u, lo, hi) => this.#rangeX(lo, hi) }, y: log ? { distr: 3 } : { range: (u, lo, hi) => rangeY(u, lo, hi, bands) } },
        axes: [{ ...axis, values: (_, ticks) => ticks.map((v) => (Number.isInteger(v) ? count(v) : '')) }, { ...axis, size: 64, values: (_, ticks) => ticks.map((v) => (v === null ? '' : value(v))) }],
        legend: { show: false }, cursor: { y: false, drag: { x: true, y: false, setScale: false, dist: 6 }, bind: { dblclick: () => () => this.#show(null) } },
        hooks: { setCursor: [(u) => this.#read(u, series)], setSelect: [(u) => this.#selected(u)] },
      },
      join(lines), this.area,
    );
    const points = groups.reduce((sum, g) => sum + g.points, 0);
    this.rest = `${count(points)} points behind ${groups.length === 1 ? '1 group' : `${groups.length} groups`}${dropped ? `; ${count(dropped)} not above 0, hidden by log y` : ''}`;
    this.foot.textContent = this.rest;
    this.area.setAttribute('aria-label', `${this.#answer.series}: ${groups.map((g) => `${g.label} ends at ${value(last(g.mean.mean))}`).join(', ')}`);
  }

  #selected(u) {
    const { left, width } = u.select;
    if (width < 6) return;
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.#show([u.posToVal(left, 'x'), u.posToVal(left + width, 'x')]);
  }

  /** lines are, for each group, its runs faint, its interval as a band, its mean. */
  #lines(groups, log) {
    const lines = [];
    const series = [];
    const bands = [];
    let dropped = 0;
    const usable = (values, counted) =>
      values.map((v) => {
        if (log && v !== null && v <= 0) {
          dropped += counted ? 1 : 0;
          return null;
        }
        return v;
      });
    const add = (steps, values, options) => {
      lines.push({ steps, values });
      series.push({ spanGaps: false, points: { show: steps.length < 40 && options.width > 1, size: 5 }, ...options });
      return series.length;
    };
    const members = this.form.elements.members.checked;
    for (const g of groups) {
      const c = colour(`--slot-${g.color % colours}`);
      if (members && g.members.length > 1) {
        for (const m of g.members) add(m.steps, usable(m.values), { stroke: see(c, 30), width: 1, points: { show: false } });
      }
      if (g.mean.low.some((v) => v !== null)) {
        const low = add(g.mean.steps, usable(g.mean.low), { auto: false, stroke: 'transparent', width: 0, points: { show: false } });
        const high = add(g.mean.steps, usable(g.mean.high), { auto: false, stroke: 'transparent', width: 0, points: { show: false } });
        bands.push({ series: [high, low], fill: see(c, 15) });
      }
      add(g.mean.steps, usable(g.mean.mean, true), { label: this.#title(g), stroke: c, width: 2, mean: true, dash: g.dashed ? [6, 4] : undefined });
    }
    return { lines, series, bands, dropped };
  }

  /** read tells the means under the pointer. */
  #read(u, series) {
    const i = u.cursor.idx;
    if (i === null || i === undefined) {
      this.foot.textContent = this.rest ?? '';
      return;
    }
    const parts = [];
    series.forEach((s, j) => {
      if (!s.mean) return;
      const v = nearest(u.data[j + 1], i);
      if (v !== null) parts.push(`${s.label}: ${value(v)}`);
    });
    this.foot.textContent = `step ${count(u.data[0][i])} — ${parts.join(', ')}`;
  }

  #fit() {
    const width = this.area.clientWidth;
    if (this.#plot && width > 0 && width !== this.#plot.width) this.#plot.setSize({ width, height: this.area.clientHeight });
  }
}

const headroom = 0.3; // of the lines' height that intervals may add above and below: those of two runs would leave nothing of the lines

/** rangeY fits the lines in view, and their intervals as far as the lines stay legible. */
function rangeY(u, lo, hi, bands) {
  if (lo === null) return [0, 1];
  const [from, to] = u.series[0].idxs;
  const edges = bands.flatMap((b) => b.series).flatMap((i) => u.data[i].slice(from, to + 1)).filter(Number.isFinite);
  const room = headroom * (hi - lo);
  const low = edges.reduce((a, b) => Math.min(a, b), lo);
  const high = edges.reduce((a, b) => Math.max(a, b), hi);
  return uPlot.rangeNum(Math.max(low, lo - room), Math.min(high, hi + room), 0.1, true);
}

const last = (values) => values[values.length - 1] ?? null;

/** nearest is the value at i, or the one before it that a thinned line has. */
function nearest(column, i) {
  while (i >= 0 && column[i] === undefined) i--;
  return i < 0 ? null : column[i];
}

/** Swaps shows one pair through several models: single swaps, or the walk from A to B. */
class Swaps {
  #ticket = 0;
  #answers = new Map(); // by row

  constructor(section) {
    this.section = section;
    this.form = section.querySelector('[data-part="pair"]');
    this.rows = [...section.querySelectorAll('[data-swap-run]')];
    if (!this.form) return;
    this.form.onsubmit = (e) => {
      e.preventDefault();
      this.show();
    };
    this.form.elements.random.onclick = () => {
      for (const name of ['a', 'b']) this.form.elements[name].value = Math.floor(Math.random() * (Number(this.form.elements[name].max) + 1));
      this.show();
    };
    this.form.onchange = (e) => e.target.name === 'view' && this.rows.forEach((row) => this.#draw(row));
    new IntersectionObserver((entries, seen) => {
      if (entries.some((e) => e.isIntersecting)) {
        seen.disconnect();
        this.show();
      }
    }).observe(section);
  }

  async show() {
    const ticket = ++this.#ticket;
    const { a, b } = this.form.elements;
    const q = new URLSearchParams({ a: a.value.trim(), b: b.value.trim() });
    this.#name(q);
    for (const row of this.rows) {
      const answer = await fetch(`/api/play/${row.dataset.swapRun}/swaps?${q}`).catch(() => null);
      const body = await answer?.json().catch(() => null);
      if (ticket !== this.#ticket) return;
      this.#answers.set(row, answer?.ok && body ? body : { error: body?.error ?? 'The pictures could not be decoded; the server does not answer.' });
      this.#draw(row);
    }
  }

  /** name puts the pair's own images and its numbers where they belong. */
  #name(q) {
    const first = this.rows[0].dataset.swapRun;
    this.section.querySelector('[data-part="originals"]').replaceChildren(
      ...['a', 'b'].map((name) => picture(`/api/play/${first}/original.png?index=${encodeURIComponent(q.get(name))}`, `Image ${name.toUpperCase()}`)),
    );
    for (const link of this.section.querySelectorAll('[data-figure]')) {
      const url = new URL(link.href);
      for (const [name, number] of q) url.searchParams.set(name, number);
      link.href = url.pathname + url.search;
    }
  }

  #draw(row) {
    const body = this.#answers.get(row);
    const tiles = row.querySelector('[data-part="tiles"]');
    if (!body) return;
    if (body.error) tiles.textContent = body.error;
    else tiles.replaceChildren(...(this.form.elements.view.value === 'strip' ? stripOf(body) : swapsOf(body)));
  }
}

const share = (s) => `${Math.round(100 * s.changed)}%`;

/** swapsOf lays out A and B as the model has them, then A with each slot of B. */
function swapsOf({ strip, swaps }) {
  return [
    tile(strip[0].image, 'A', 'pair'),
    tile(strip.at(-1).image, 'B', 'pair'),
    ...swaps.map((s) => tile(s.image, `slot ${s.slot}`, '', share(s), `A with slot ${s.slot} of B`)),
  ];
}

/** stripOf lays out the walk from A to B. */
function stripOf({ strip }) {
  return strip.map((s, i) => (i === 0 ? tile(s.image, 'A', 'pair') : tile(s.image, `+ slot ${s.slot}`, '', share(s), `A with ${i} of ${strip.length - 1} slots of B`)));
}

function tile(src, text, className = '', changed = '', alt = text) {
  const figure = document.createElement('figure');
  figure.className = className;
  const caption = document.createElement('figcaption');
  caption.append(text);
  if (changed) {
    const part = document.createElement('span');
    part.textContent = changed;
    part.title = 'share of pixels that change';
    caption.append(part);
  }
  figure.append(picture(src, changed ? `${alt}, ${changed} of pixels change` : alt), caption);
  return figure;
}

function picture(src, alt) {
  const img = new Image(64, 64);
  img.src = src;
  img.alt = alt;
  img.className = 'pixels';
  return img;
}

/** pick makes the list to choose from: a box for all of a group, a filter, a count. */
function pick(form) {
  const boxes = () => [...form.querySelectorAll('input[name="runs"]')];
  const tell = () => {
    for (const all of form.querySelectorAll('[data-part="pick-all"]')) {
      const own = [...all.closest('li').querySelectorAll('input[name="runs"]')];
      all.checked = own.every((b) => b.checked);
      all.indeterminate = !all.checked && own.some((b) => b.checked);
    }
    const n = boxes().filter((b) => b.checked).length;
    form.querySelector('[data-part="pick-count"]').textContent = n === 0 ? 'none chosen' : n === 1 ? '1 run chosen' : `${n} runs chosen`;
  };
  form.onchange = (e) => {
    if (e.target.dataset.part === 'pick-all') {
      for (const b of e.target.closest('li').querySelectorAll('input[name="runs"]')) b.checked = e.target.checked;
    }
    tell();
  };
  form.querySelector('[data-part="pick-filter"]').oninput = (e) => {
    const words = e.target.value.toLowerCase().split(/\s+/);
    for (const li of form.querySelectorAll('li')) li.hidden = !words.every((w) => li.dataset.text.includes(w));
  };
  form.onsubmit = (e) => {
    const chosen = boxes().filter((b) => b.checked);
    if (chosen.length === 0) {
      e.preventDefault();
      form.querySelector('[data-part="pick-count"]').textContent = 'Choose at least one run.';
      return;
    }
    e.preventDefault();
    location.href = `/compare?runs=${chosen.map((b) => b.value).join(',')}`;
  };
  tell();
}

if (typeof document !== 'undefined') {
  for (const section of document.querySelectorAll('[data-part="curves"]')) new Curves(section);
  for (const section of document.querySelectorAll('[data-part="swaps"]')) new Swaps(section);
  for (const form of document.querySelectorAll('[data-part="picker"]')) pick(form);
  for (const form of document.querySelectorAll('[data-part="rule"]')) {
    form.querySelector('button').hidden = true;
    form.querySelector('select').onchange = () => form.requestSubmit();
  }
}
