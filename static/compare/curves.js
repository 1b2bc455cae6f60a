// Curves of compared runs: one chart per selected series with the mean and interval of every group, updated while runs train.
import { backoff } from '../run/stream.js';
import { count, duration, value } from '../shared/format.js';
import { rest, Zoom } from '../shared/zoom.js';

const cells = 4000; // grid cells of the time axis: without a grid, lines of different runs would share no x values
const headroom = 0.3; // fraction of the lines' height that intervals may add above and below; the wide intervals of two runs would flatten the lines
const calm = 2000; // ms between two updates of running runs
const patience = 10; // wait this many times the duration of the last update, if that is longer

const see = (rgb, share) => `color-mix(in srgb, ${rgb} ${share}%, transparent)`;

/** paint resolves a class of figure.css, or a custom property, to a colour for the canvas. */
function paint(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const probe = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  if (name.startsWith('--')) probe.style.stroke = `var(${name})`;
  else probe.setAttribute('class', name);
  svg.append(probe);
  document.body.append(svg);
  const out = getComputedStyle(probe).stroke;
  svg.remove();
  return out;
}

/** join aligns lines with different x on one axis; a missing point is undefined and skipped, not drawn as a gap. */
export function join(lines) {
  const xs = [...new Set(lines.flatMap((l) => l.xs))].sort((a, b) => a - b);
  const at = new Map(xs.map((s, i) => [s, i]));
  const columns = lines.map((l) => {
    const out = new Array(xs.length).fill(undefined);
    l.xs.forEach((s, i) => (out[at.get(s)] = l.values[i]));
    return out;
  });
  return [xs, ...columns];
}

/** unread lists the URL parameters with unusable values; known is the set of the runs' series. */
export function unread(q, known) {
  const takes = {
    series: (v) => known.has(v),
    x: (v) => ['step', 'images', 'time'].includes(v),
    smooth: (v) => Number(v) >= 0 && Number(v) < 1,
    log: (v) => v === '0' || v === '1',
    members: (v) => v === '0' || v === '1',
  };
  return Object.entries(takes).flatMap(([name, fits]) => (q.get(name) ?? '').split(',').filter((v) => v && !fits(v)).map((v) => `${name}=${v}`));
}

/** across returns the x values of a line: steps, images seen, or seconds of training on a grid; null if the time was not measured. */
export function across(x, line, batch, whole) {
  if (x === 'images') return line.steps.map((s) => s * batch);
  if (x !== 'time') return line.steps;
  const cell = whole / cells || 1;
  return line.seconds?.map((s) => Math.round(s / cell) * cell) ?? null;
}

const last = (values) => values[values.length - 1] ?? null;

/** nearest returns the value at i, or the last one before it if a thinned line has none there. */
function nearest(column, i) {
  while (i >= 0 && column[i] === undefined) i--;
  return i < 0 ? null : column[i];
}

/** rangeY returns a y range that fits the visible lines, and their intervals as far as the lines stay legible. */
function rangeY(u, lo, hi, bands) {
  if (lo === null) return [0, 1];
  const [from, to] = u.series[0].idxs;
  const edges = bands.flatMap((b) => b.series).flatMap((i) => u.data[i].slice(from, to + 1)).filter(Number.isFinite);
  const room = headroom * (hi - lo);
  const low = edges.reduce((a, b) => Math.min(a, b), lo);
  const high = edges.reduce((a, b) => Math.max(a, b), hi);
  return uPlot.rangeNum(Math.max(low, lo - room), Math.min(high, hi + room), 0.1, true);
}

const keyOf = (g) => `${g.section ?? ''} ${g.dataset} ${g.label}`;

/** Chart draws one series of every group. page is its Curves. */
class Chart {
  #plot = null;
  #ticket = 0;
  answer = null;

  constructor(page, series) {
    this.page = page;
    this.series = series;
    this.figure = document.createElement('figure');
    this.figure.className = 'chart';
    this.figure.dataset.series = series.name;
    const head = document.createElement('figcaption');
    const title = document.createElement('b');
    title.textContent = series.title;
    const unit = document.createElement('span');
    unit.className = 'quiet';
    unit.textContent = series.unit;
    head.append(title, ' ', unit);
    this.area = document.createElement('div');
    this.area.className = 'overlay';
    this.area.setAttribute('role', 'img');
    this.area.setAttribute('aria-label', `${series.title}: not drawn yet`);
    this.said = document.createElement('p');
    this.said.className = 'quiet';
    this.figure.append(head, this.area, this.said);
    new Zoom(this.area, { u: () => this.#plot, zoomed: () => page.range !== null, whole: () => this.#whole(), least: () => page.least(), show: (range) => page.show(range) });
    this.resize = new ResizeObserver(() => this.#fit());
    this.resize.observe(this.area);
  }

  end() {
    this.resize.disconnect();
    this.#plot?.destroy();
    this.figure.remove();
    this.#ticket++;
  }

  /** load requests the series again; the old chart stays until the response arrives. */
  async load() {
    const ticket = ++this.#ticket;
    if (!this.answer) this.said.textContent = 'Loading all points…';
    const answer = await fetch(`/api/compare/curves?${this.page.ask(this.series.name)}`).catch(() => null);
    const body = await answer?.json().catch(() => null);
    if (ticket !== this.#ticket) return;
    if (!answer?.ok || !body) {
      this.said.textContent = body?.error ?? 'Could not load the curves: no response from the server.';
      return;
    }
    this.answer = body;
    this.page.legend();
    this.draw();
  }

  get groups() {
    return (this.answer?.groups ?? []).filter((g) => !this.page.hidden.has(keyOf(g)));
  }

  #whole() {
    const xs = this.#plot?.data[0] ?? [];
    return xs.length ? [xs[0], xs[xs.length - 1]] : [0, 1];
  }

  /** fresh redraws the plot for a new range. */
  fresh() {
    this.#plot?.setData(this.#plot.data);
  }

  rest() {
    rest(this.#plot);
  }

  draw() {
    this.#plot?.destroy();
    this.#plot = null;
    if (!this.answer) return;
    const { lines, series, bands, dropped, unclocked } = this.#lines();
    const groups = this.groups;
    if (lines.length === 0) {
      this.said.textContent = unclocked ? 'Training time unknown: no run recorded its speed.' : 'No group is selected, or none of these runs has this series.';
      return;
    }
    const { log, x } = this.page;
    const ink = paint('--quiet');
    const rule = paint('--rule');
    const font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const axis = { stroke: ink, font, grid: { stroke: rule, width: 1 }, ticks: { stroke: rule, width: 1 } };
    const mark = x === 'time' ? duration : (v) => (Number.isInteger(v) ? count(v) : '');
    this.#plot = new uPlot(
      {
        width: this.area.clientWidth, height: this.area.clientHeight, series: [{ label: x }, ...series], bands,
        scales: { x: { time: false, range: (u, lo, hi) => this.#rangeX(lo, hi) }, y: log ? { distr: 3 } : { range: (u, lo, hi) => rangeY(u, lo, hi, bands) } },
        axes: [{ ...axis, space: 70, values: (_, ticks) => ticks.map(mark) }, { ...axis, size: 64, values: (_, ticks) => ticks.map((v) => (v === null ? '' : value(v))) }],
        legend: { show: false },
        cursor: { y: false, sync: { key: 'compare', scales: ['x', null] }, drag: { x: true, y: false, setScale: false, dist: 6 }, bind: { dblclick: () => () => this.page.show(null) } },
        hooks: { setCursor: [(u) => this.#read(u, series)], setSelect: [(u) => this.#selected(u)] },
      },
      join(lines), this.area,
    );
    const points = groups.reduce((sum, g) => sum + g.points, 0);
    const parts = [`${count(points)} points in ${groups.length === 1 ? '1 group' : `${groups.length} groups`}`];
    if (dropped) parts.push(`${count(dropped)} ≤ 0, hidden by log y`);
    if (unclocked) parts.push(`${count(unclocked)} lines without a recorded speed hidden`);
    this.said.textContent = parts.join('; ');
    this.area.setAttribute('aria-label', `${this.series.title}: ${groups.map((g) => `${g.label} ends at ${value(last(g.mean.mean))}`).join(', ')}`);
  }

  #rangeX(lo, hi) {
    if (this.page.range) return this.page.range;
    return lo === hi ? [0, 2 * hi || 1] : [lo, hi];
  }

  #selected(u) {
    const { left, width } = u.select;
    if (width < 6) return;
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.page.show([u.posToVal(left, 'x'), u.posToVal(left + width, 'x')]);
  }

  /** lines returns, for each group, its runs as faint lines, its interval as a band, and its mean. */
  #lines() {
    const { log, x, members } = this.page;
    const lines = [];
    const series = [];
    const bands = [];
    let dropped = 0;
    let unclocked = 0;
    const whole = Math.max(0, ...this.groups.flatMap((g) => [g.mean, ...g.members]).map((l) => last(l.seconds ?? []) ?? 0));
    const usable = (values, counted) =>
      values.map((v) => {
        if (log && v !== null && v <= 0) {
          dropped += counted ? 1 : 0;
          return null;
        }
        return v;
      });
    const add = (xs, values, options) => {
      lines.push({ xs, values });
      series.push({ spanGaps: false, points: { show: xs.length < 40 && options.width > 1, size: 5 }, ...options });
      return series.length;
    };
    for (const g of this.groups) {
      const c = paint(`k-s${g.color}`);
      const dash = g.dash?.length ? g.dash : undefined;
      if (members && g.members.length > 1) {
        for (const m of g.members) {
          const xs = across(x, m, g.batch, whole);
          if (xs) add(xs, usable(m.values), { stroke: see(c, 30), width: 1, points: { show: false } });
        }
      }
      const xs = across(x, g.mean, g.batch, whole);
      if (!xs) {
        unclocked++;
        continue;
      }
      if (g.mean.low.some((v) => v !== null)) {
        const edge = { stroke: 'transparent', width: 0, points: { show: false } };
        const high = add(xs, usable(g.mean.high), edge);
        bands.push({ series: [high, add(xs, usable(g.mean.low), edge)], fill: see(c, 16) });
      }
      add(xs, usable(g.mean.mean, true), { label: this.page.title(g), stroke: c, width: 2, mean: true, dash });
    }
    return { lines, series, bands, dropped, unclocked };
  }

  /** read shows the means at the pointer, for the chart under the pointer. */
  #read(u, series) {
    if (!this.area.matches(':hover') && this.area !== document.activeElement && !this.touched) return;
    const i = u.cursor.idx;
    if (i === null || i === undefined || u.cursor.left < 0) {
      this.page.say('');
      return;
    }
    const parts = [];
    series.forEach((s, j) => {
      if (!s.mean) return;
      const v = nearest(u.data[j + 1], i);
      if (v !== null) parts.push(`${s.label}: ${value(v)}`);
    });
    const at = u.data[0][i];
    this.page.say(`${this.series.title}, ${this.page.x === 'time' ? `after ${duration(at)}` : `${this.page.x === 'images' ? 'image' : 'step'} ${count(at)}`} — ${parts.join(', ')}`);
  }

  #fit() {
    const width = this.area.clientWidth;
    if (this.#plot && width > 0 && width !== this.#plot.width) this.#plot.setSize({ width, height: this.area.clientHeight });
  }
}

/** Curves is the charts of a comparison and their view settings, which are mirrored in the URL. */
class Curves {
  #charts = [];
  #timer = 0;
  hidden = new Set(); // keys of groups
  range = null; // visible x, or null for all

  constructor(section) {
    this.data = JSON.parse(section.querySelector('#curves-data').textContent);
    this.section = section;
    this.form = section.querySelector('[data-part="curve-tools"]');
    this.usual = { members: this.form.elements.members.checked };
    this.form.hidden = false;
    this.form.onsubmit = (e) => e.preventDefault();
    const f = this.form.elements;
    this.#read(new URLSearchParams(location.search));
    f.x.onchange = () => ((this.range = null), this.#keep(), this.load());
    f.smooth.oninput = () => this.smooth(Number(f.smooth.value));
    f.log.onchange = f.members.onchange = () => (this.#keep(), this.draw());
    f.reset.onclick = () => this.show(null);
    f.reset.disabled = true;
    for (const box of this.#boxes()) box.onchange = () => (this.#keep(), this.choose());
    addEventListener('keydown', (e) => this.#key(e));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => (this.legend(), this.draw()));
    section.addEventListener('click', (e) => e.target.closest('.overlay') || this.#charts.forEach((c) => c.rest()));
    section.addEventListener('pointerdown', (e) => this.#charts.forEach((c) => (c.touched = e.pointerType !== 'mouse' && c.area.contains(e.target))));
    this.choose();
  }

  #boxes = () => [...this.form.querySelectorAll('[name="series"]')];

  get x() {
    return this.form.elements.x.value;
  }

  get log() {
    return this.form.elements.log.checked;
  }

  get members() {
    return this.form.elements.members.checked;
  }

  /** least returns the narrowest range of x, two steps; 0 if x is not the step. */
  least() {
    return this.x === 'step' ? 2 : 0;
  }

  /** decisive returns the series that are shown by default. */
  get #decisive() {
    const names = this.data.series.filter((s) => s.group === '' && !/^perplexity\/(batch|used)$/.test(s.name)).map((s) => s.name);
    return names.length ? names : this.data.series.slice(0, 1).map((s) => s.name);
  }

  /** read applies the view settings of a URL. */
  #read(q) {
    const f = this.form.elements;
    const known = new Set(this.data.series.map((s) => s.name));
    const asked = (q.get('series') ?? '').split(',').filter((name) => known.has(name));
    const shown = new Set(asked.length ? asked : this.#decisive);
    for (const box of this.#boxes()) box.checked = shown.has(box.value);
    if (['images', 'time'].includes(q.get('x'))) f.x.value = q.get('x');
    this.#smoothed(Number(q.get('smooth')) || 0);
    f.log.checked = q.get('log') === '1';
    if (q.has('members')) f.members.checked = q.get('members') === '1';
    const odd = unread(q, known);
    const said = this.section.querySelector('[data-part="unread"]');
    said.hidden = odd.length === 0;
    said.textContent = `Ignored in the URL: ${odd.join(', ')}. These runs have no such series, or the value is invalid.`;
  }

  /** keep writes the view settings to the page's URL, without defaults. */
  #keep() {
    const f = this.form.elements;
    const url = new URL(location.href);
    const set = (name, now, usual) => (now === usual ? url.searchParams.delete(name) : url.searchParams.set(name, now));
    const shown = this.#boxes().filter((b) => b.checked).map((b) => b.value);
    set('series', shown.join(','), shown.length ? this.data.series.map((s) => s.name).filter((n) => this.#decisive.includes(n)).join(',') : '');
    set('x', f.x.value, 'step');
    set('smooth', f.smooth.value, '0');
    set('log', f.log.checked ? '1' : '0', '0');
    set('members', f.members.checked ? '1' : '0', this.usual.members ? '1' : '0');
    history.replaceState(history.state, '', `${url.pathname}?${url.searchParams.toString().replaceAll('%2C', ',').replaceAll('%2F', '/')}`);
  }

  /** ask returns the query for one series. */
  ask(name) {
    const q = new URLSearchParams(this.data.query);
    q.set('series', name);
    const alpha = Number(this.form.elements.smooth.value);
    if (alpha > 0) q.set('smooth', alpha);
    if (this.x === 'time') q.set('clock', 'true');
    return q;
  }

  /** choose makes a chart of each selected series and keeps existing ones. */
  choose() {
    const shown = this.#boxes().filter((b) => b.checked).map((b) => b.value);
    for (const c of this.#charts) if (!shown.includes(c.series.name)) c.end();
    const kept = this.#charts.filter((c) => shown.includes(c.series.name));
    this.#charts = this.data.series.filter((s) => shown.includes(s.name)).map((s) => kept.find((c) => c.series.name === s.name) ?? new Chart(this, s));
    const area = this.section.querySelector('[data-part="overlays"]');
    area.replaceChildren(...this.#charts.map((c) => c.figure));
    area.classList.toggle('one', this.#charts.length === 1);
    this.section.querySelector('[data-part="charts-count"]').textContent = `${count(shown.length)} of ${count(this.data.series.length)} series shown`;
    this.say('');
    return this.#all(this.#charts.filter((c) => !c.answer));
  }

  load() {
    return this.#all(this.#charts);
  }

  /** all loads charts one after another, because each reads every point. */
  async #all(charts) {
    for (const c of charts) await c.load();
  }

  draw() {
    for (const c of this.#charts) c.draw();
  }

  /** show zooms to a range of x; null shows everything. */
  show(range) {
    this.range = range;
    this.form.elements.reset.disabled = !range;
    for (const c of this.#charts) c.fresh();
  }

  say(text) {
    this.section.querySelector('[data-part="curve-foot"]').textContent = text;
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

  smooth(alpha) {
    this.#smoothed(alpha);
    this.#keep();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.load(), 150);
  }

  title(g) {
    const many = new Set(this.#groups().map((o) => o.dataset)).size > 1;
    const n = g.members.length;
    return `${g.label}${many ? ` · ${g.dataset}` : ''} (${n === 1 ? '1 run' : `${n} runs`})`;
  }

  /** groups returns the groups of all charts, each once. */
  #groups() {
    const all = new Map();
    for (const c of this.#charts) for (const g of c.answer?.groups ?? []) if (!all.has(keyOf(g))) all.set(keyOf(g), g);
    return [...all.values()];
  }

  /** legend draws one checkbox per group. */
  legend() {
    const groups = this.#groups();
    const legend = this.section.querySelector('[data-part="legend"]');
    const shown = groups.map((g) => `${keyOf(g)} ${this.title(g)}`).join('\n');
    if (legend.dataset.shown === shown) return;
    legend.dataset.shown = shown;
    legend.replaceChildren(
      ...groups.map((g) => {
        const label = document.createElement('label');
        const box = document.createElement('input');
        box.type = 'checkbox';
        box.checked = !this.hidden.has(keyOf(g));
        box.onchange = () => {
          this.hidden[box.checked ? 'delete' : 'add'](keyOf(g));
          this.draw();
        };
        label.append(box, swatch(g), this.title(g));
        return label;
      }),
    );
  }
}

/** swatch returns a line sample of a group. */
function swatch(g) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('class', 'swatch');
  svg.setAttribute('viewBox', '0 0 20 4');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  path.setAttribute('class', `k-s${g.color}`);
  path.setAttribute('d', 'M0 2h20');
  path.setAttribute('stroke-dasharray', (g.dash ?? []).join(' '));
  svg.append(path);
  return svg;
}

/** Live follows the compared runs and reloads what changed, no faster than the server responds. */
class Live {
  #tries = 0;
  #busy = false;
  #wanted = null; // latest progress received, not shown yet

  constructor(curves, data) {
    this.curves = curves;
    this.data = data;
    this.now = data.standing;
    document.addEventListener('visibilitychange', () => this.#catchUp());
    this.#open();
  }

  #open() {
    const socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/ws/compare?${this.data.query}`);
    socket.onmessage = (e) => {
      this.#tries = 0;
      this.#wanted = JSON.parse(e.data);
      this.#catchUp();
    };
    socket.onclose = () => setTimeout(() => this.#open(), backoff(this.#tries++));
  }

  async #catchUp() {
    if (this.#busy || document.hidden || !this.#wanted) return;
    this.#busy = true;
    const { points, scores, live } = this.#wanted;
    const from = performance.now();
    const word = document.querySelector('[data-part="live"]');
    word.hidden = live === 0;
    word.textContent = live === 1 ? '1 run is unfinished; this page updates automatically' : `${count(live)} runs are unfinished; this page updates automatically`;
    if (scores !== this.now.scores) await renew();
    if (points !== this.now.points) await (this.curves ? this.curves.load() : location.reload()); // the first points: the page has no charts yet
    this.now = { points, scores };
    setTimeout(() => {
      this.#busy = false;
      if (this.#wanted.points !== this.now.points || this.#wanted.scores !== this.now.scores) this.#catchUp();
    }, Math.max(calm, patience * (performance.now() - from)));
  }
}

/** renew replaces the tables with the server's current ones, unless one of their forms has the focus. */
async function renew() {
  const old = document.querySelector('[data-part="results"]');
  if (old.contains(document.activeElement) && document.activeElement.closest('form')) return;
  const answer = await fetch(location.href).catch(() => null);
  if (!answer?.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('[data-part="results"]');
  if (!fresh) return;
  const open = [...old.querySelectorAll('details')].map((d) => d.open);
  fresh.querySelectorAll('details').forEach((d, i) => (d.open = open[i] ?? d.open));
  old.replaceChildren(...fresh.children);
}

if (typeof document !== 'undefined') {
  const section = document.querySelector('[data-part="curves"]');
  if (section) {
    const curves = section.querySelector('[data-part="curve-tools"]') ? new Curves(section) : null;
    new Live(curves, JSON.parse(section.querySelector('#curves-data').textContent));
  }
}
