// One chart of a run's page, drawn by uPlot: measured values, their moving average and the target line.
import { robust } from './axis.js';
import { png, save, svg } from './export.js';
import { slice, within } from './series.js';
import { count, duration, value } from '../shared/format.js';
import { rest, Zoom } from '../shared/zoom.js';

const height = { whole: 460, large: 220, small: 150 };

/** colour resolves a CSS custom property to a colour that the canvas accepts. */
function colour(name) {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const out = getComputedStyle(probe).color;
  probe.remove();
  return out;
}

let palette = null;

/** forgetColours clears the cached colours after a change of the colour scheme. */
export function forgetColours() {
  palette = null;
}

function colours() {
  palette ??= {
    more: ['--slot-0', '--slot-5', '--slot-2', '--slot-3', '--slot-7'].map(colour), ink: colour('--ink'), paper: colour('--paper'), quiet: colour('--quiet'), rule: colour('--rule'), accent: colour('--accent'), behind: colour('--rule-strong'), bad: colour('--bad'),
    font: `12px ${getComputedStyle(document.body).fontFamily}`,
  };
  return palette;
}

/** stroke returns the line style of a panel's i-th series, distinct in dash as well as colour; run.css uses the same in the key. */
function stroke(i) {
  const c = colours();
  const first = [{ stroke: c.accent, dash: [] }, { stroke: c.quiet, dash: [2, 3] }, { stroke: c.ink, dash: [7, 3] }];
  return first[i] ?? { stroke: c.more[(i - 3) % c.more.length], dash: i % 2 ? [] : [7, 3] };
}

/** sparse reports whether a series is measured only occasionally: each point is drawn, without smoothing. */
const sparse = (name) => name.endsWith('/eval');

/** faint returns the stroke of raw values behind their moving average. */
function faint(rgb) {
  return `color-mix(in srgb, ${rgb} 28%, transparent)`;
}

/**
 * Chart draws one panel. page is the shared view: store, smooth(name), alpha, log, timed, range (in steps) or null, toX(step),
 * toStep(x), detail(name), axes(key), references (stores), zoom(range or null, moving), cross(step or null).
 */
export class Chart {
  #plot = null;
  #under = 0; // number of lines of reference runs
  #nans = [];
  #dropped = 0;
  #crossed = false; // the user moved its crosshair
  #robust = null; // y range without outliers, null if there are none

  constructor(figure, panel, page) {
    this.figure = figure;
    this.panel = panel;
    this.page = page;
    this.area = figure.querySelector('[data-part="plot"]');
    this.area.setAttribute('role', 'img');
    this.area.setAttribute('aria-label', `${panel.title}: not drawn yet`);
    new Zoom(this.area, {
      u: () => this.#plot,
      zoomed: () => page.range !== null,
      whole: () => this.#whole(),
      least: () => (2 * (this.#whole()[1] - this.#whole()[0])) / Math.max(1, page.store.head - 1), // at least two steps
      show: (span, moving) => this.#zoom(span, moving),
    });
    this.resize = new ResizeObserver(() => this.#fit());
  }

  /** mount draws the chart; unmount removes it and keeps its space. */
  mount() {
    if (this.#plot) return;
    this.#plot = new uPlot(this.#options(), this.#data(), this.area);
    this.resize.observe(this.area);
    this.#say();
  }

  unmount() {
    this.resize.disconnect();
    this.#plot?.destroy();
    this.#plot = null;
  }

  /** key is the chart's name in URLs. */
  get key() {
    return this.figure.dataset.testid.replace(/^chart-/, '');
  }

  get #axes() {
    return this.page.axes(this.key);
  }

  /** log reports whether y is logarithmic, by the chart's own setting or the global one. */
  get log() {
    return this.page.log || this.#axes.log;
  }

  /** file downloads the chart as drawn, as "svg" or "png". */
  async file(kind) {
    const u = this.#plot;
    if (!u) return;
    const { panel, page } = this;
    const name = `${page.id}-${this.key.replaceAll('/', '-')}.${kind}`;
    if (kind === 'png') {
      save(await png(u.ctx.canvas, panel.unit ? `${panel.title} (${panel.unit})` : panel.title, colours()), name);
      return;
    }
    const across = page.timed ? 'training time, s' : 'step';
    const lines = u.series.slice(1).map((look, i) => ({ label: look.label ?? '', stroke: look.stroke(u, i + 1), dash: look.dash ?? [], width: look.width, xs: u.data[0], ys: u.data[i + 1] }));
    const { x, y } = u.scales;
    save(new Blob([svg({ title: panel.title, unit: panel.unit, across, x: [x.min, x.max], y: [y.min, y.max], log: this.log, lines })], { type: 'image/svg+xml' }), name);
  }

  get mounted() {
    return this.#plot !== null;
  }

  /** rebuild recreates the plot after changes of scale, colour or number of lines. */
  rebuild() {
    if (!this.#plot) return;
    this.unmount();
    this.mount();
  }

  /** draw updates the plot with the newest points. */
  draw() {
    if (!this.#plot) return;
    this.#plot.setData(this.#data());
    this.#say();
  }

  /** outliers counts the drawn values outside the axis range. */
  get outliers() {
    const [lo, hi] = this.#robust ?? [-Infinity, Infinity];
    let n = 0;
    for (const ys of this.#plot?.data.slice(1) ?? []) for (const v of ys) if (v < lo || v > hi) n++;
    return this.#limited ? 0 : n;
  }

  get #limited() {
    return this.#axes.y !== null;
  }

  /** samples of one series in view; detail replaces thinned data if the page has it. */
  #samples(name) {
    const { page } = this;
    const detail = page.range && page.detail(name);
    const s = detail || page.store.get(name);
    return slice(s.steps, s.values, page.range);
  }

  #smoothed(name) {
    return this.page.alpha > 0 && !sparse(name);
  }

  #data() {
    this.#nans = [];
    this.#dropped = 0;
    const tables = [];
    const behind = this.#behind;
    this.#under = this.figure.dataset.behind = behind.length;
    for (const { steps, values } of behind) tables.push(this.#table(slice(steps, values, this.page.range), false, this.#scale(0))); // first, so that they are drawn below
    for (const [i, name] of this.panel.series.entries()) {
      const scale = this.#scale(i);
      tables.push(this.#table(this.#samples(name), true, scale));
      if (this.#smoothed(name)) {
        const smooth = this.page.smooth(name);
        tables.push(this.#table(slice(smooth.steps, smooth.values, this.page.range), false, scale));
      }
    }
    this.#robust = null;
    if (!this.log && !this.#axes.all && !this.panel.series.some(sparse)) this.#robust = robust(tables.flatMap(([, ys]) => ys.filter((v) => v !== null)));
    return tables.length === 1 ? tables[0] : uPlot.join(tables);
  }

  /** behind returns the first series of the reference runs, up to this run's last step. */
  get #behind() {
    const { references, store } = this.page;
    const all = references.map((r) => r.get(this.panel.series[0])).filter((s) => s.steps.length);
    return all.map((s) => slice(s.steps, s.values, [1, Math.max(1, store.head)]));
  }

  /** scale returns the panel's factor for its i-th series. */
  #scale(i) {
    return this.panel.scale?.[i] ?? 1;
  }

  /** table converts samples to [x, y], with y times scale; null for values that cannot be drawn. */
  #table({ steps, values }, raw, scale) {
    const ys = values.map((v, i) => {
      if (!Number.isFinite(v)) {
        if (raw) this.#nans.push([steps[i], v]);
        return null;
      }
      if (this.log && v <= 0) {
        if (raw) this.#dropped++;
        return null;
      }
      return v * scale;
    });
    return [steps.map(this.page.toX), ys];
  }

  #options() {
    const { panel, page } = this;
    const c = colours();
    const axis = { stroke: c.quiet, font: c.font, grid: { stroke: c.rule, width: 1 }, ticks: { show: false }, gap: 4 };
    return {
      width: this.area.clientWidth || 300,
      height: panelHeight(this.figure),
      legend: { show: false },
      padding: [8, 16, 0, 0],
      cursor: {
        sync: { key: 'run', scales: ['x', null] },
        drag: { x: true, y: false, setScale: false, dist: 6 },
        points: { size: 6 },
        y: false,
        bind: { dblclick: () => () => page.zoom(null) },
      },
      scales: {
        x: { time: false, range: (u, lo, hi) => this.#rangeX(lo, hi) },
        y: { distr: this.log ? 3 : 1, range: (u, lo, hi) => this.#rangeY(lo, hi) },
      },
      axes: [
        { ...axis, size: 24, space: 70, values: (u, ticks, i, space, incr) => ticks.map((v) => (page.timed ? duration(v) : tick(v, incr))) },
        { ...axis, size: 52, space: 28, values: (u, ticks, i, space, incr) => ticks.map((v) => (v === null ? '' : tick(v, this.log ? v : incr))) },
      ],
      series: [{}, ...this.#behind.map(() => ({ stroke: c.behind, width: 1.25, points: { show: false }, label: 'earlier run' })), ...panel.series.flatMap((name, i) => this.#lines(i))],
      hooks: {
        setSelect: [(u) => this.#selected(u)],
        setCursor: [(u) => this.#read(u), (u) => this.#cross(u)],
        draw: [(u) => this.#marks(u)],
      },
    };
  }

  #lines(i) {
    const look = stroke(i);
    const name = this.panel.series[i];
    const points = { show: sparse(name) ? true : undefined, size: 5, fill: look.stroke };
    const raw = { ...look, width: 1.25, points, label: this.panel.labels?.[i] };
    if (!this.#smoothed(name)) return [raw];
    return [{ ...raw, label: undefined, stroke: faint(look.stroke), width: 1, points: { show: false } }, { ...look, width: 1.75, points: { show: false }, label: raw.label }];
  }

  #rangeX(lo, hi) {
    const { page } = this;
    if (page.range) return [page.toX(page.range[0]), page.toX(page.range[1])];
    if (page.store.head > 0) [lo, hi] = this.#whole();
    if (lo === null) return [0, page.timed ? 60 : page.steps];
    return lo === hi ? [lo - 1, hi + 1] : [lo, hi];
  }

  #rangeY(lo, hi) {
    if (this.#limited) {
      const [a, b] = this.#axes.y;
      const [c, d] = this.#wholeY(lo, hi);
      const range = [this.log && a !== null && a <= 0 ? c : (a ?? c), b ?? d];
      return range[0] < range[1] ? range : [c, d];
    }
    if (this.#robust && lo !== null) [lo, hi] = this.#robust;
    return this.#wholeY(lo, hi);
  }

  #wholeY(lo, hi) {
    const { target, floor } = this.panel;
    if (this.log) return logRange(lo, hi, target);
    if (lo === null) [lo, hi] = [target ?? 0, target ?? 1];
    if (target !== null && target !== undefined) [lo, hi] = [Math.min(lo, target), Math.max(hi, target)];
    if (floor !== null && floor !== undefined) lo = Math.min(lo, floor);
    if (lo === hi) return [lo - (Math.abs(lo) || 1) * 0.1, hi + (Math.abs(hi) || 1) * 0.1];
    const pad = (hi - lo) * 0.06;
    return [floor !== null && floor !== undefined && lo >= floor ? lo : lo - pad, hi + pad];
  }

  #selected(u) {
    const { left, width } = u.select;
    if (width < 6) return;
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.#zoom([u.posToVal(left, 'x'), u.posToVal(left + width, 'x')], false);
  }

  /** whole returns the x range of all points, the same for every chart. */
  #whole() {
    return [this.page.toX(1), this.page.toX(Math.max(1, this.page.store.head))];
  }

  #zoom(span, moving) {
    const range = span?.map(this.page.toStep);
    if (range && !moving) this.page.zoom([Math.max(1, Math.floor(range[0] + 1e-6)), Math.ceil(range[1] - 1e-6)], false); // whole steps
    else this.page.zoom(range ?? null, moving);
  }

  /** rest removes the crosshair. */
  rest() {
    rest(this.#plot);
  }

  /** cross reports the step under this chart's crosshair to the page, and null when it leaves. */
  #cross(u) {
    const there = u.cursor.left >= 0 && u.cursor.idx !== null;
    const own = this.area.matches(':hover') || this.area === document.activeElement;
    if (there && own) this.page.cross(this.page.toStep(u.data[0][u.cursor.idx]));
    else if (this.#crossed && !there) this.page.cross(null);
    this.#crossed = there && own;
  }

  /** read shows the values under the crosshair, or the newest ones. */
  #read(u) {
    const now = this.figure.querySelector('[data-part="now"]');
    const at = u && u.cursor.idx !== null && u.cursor.left >= 0 ? u.data[0][u.cursor.idx] : null;
    const per = this.#smoothed(this.panel.series[0]) ? 2 : 1;
    const from = 1 + this.#under;
    const values = this.panel.series.map((name, i) => (at === null ? this.#newest(name, i) : u.data[from + i * per][u.cursor.idx]));
    const where = at === null ? '' : this.page.timed ? duration(at) : `step ${count(at)}`;
    if (this.panel.labels) {
      for (const [i, li] of [...this.figure.querySelectorAll('.key li')].entries()) li.querySelector('span').textContent = values[i] === undefined || values[i] === null ? '' : value(short(values[i]));
      now.textContent = where;
      return;
    }
    const text = values[0] === undefined ? '' : value(values[0]);
    now.textContent = text === '–' ? '' : where && text ? `${where}: ${text}` : text;
  }

  #newest(name, i) {
    const { values } = this.page.store.get(name);
    return values.length ? values[values.length - 1] * this.#scale(i) : null;
  }

  /** marks draws the dashed target line, and a tick at the bottom for every non-finite value. */
  #marks(u) {
    const { ctx, bbox } = u;
    const c = colours();
    const { target, aim } = this.panel;
    ctx.save();
    ctx.font = `${12 * devicePixelRatio}px ${c.font.slice(5)}`;
    if (target !== null && target !== undefined && (!this.log || target > 0)) {
      const y = Math.round(u.valToPos(target, 'y', true));
      ctx.strokeStyle = c.ink;
      ctx.lineWidth = devicePixelRatio;
      ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.fillStyle = c.quiet;
      ctx.textAlign = 'right';
      ctx.textBaseline = y - bbox.top < 18 * devicePixelRatio ? 'top' : 'bottom';
      const text = Number.isFinite(Number(aim)) ? `target ${aim}` : `${aim} = ${value(target)}`;
      const at = [bbox.left + bbox.width - 4, y + (ctx.textBaseline === 'top' ? 3 : -2)];
      ctx.strokeStyle = c.paper;
      ctx.lineWidth = 4 * devicePixelRatio;
      ctx.lineJoin = 'round';
      ctx.strokeText(text, ...at);
      ctx.fillText(text, ...at);
    }
    this.#beyond(u, c);
    ctx.fillStyle = c.bad;
    const wide = 2 * devicePixelRatio;
    for (const [step] of this.#nans) {
      const x = u.valToPos(this.page.toX(step), 'x', true);
      if (x >= bbox.left && x <= bbox.left + bbox.width) ctx.fillRect(x - wide / 2, bbox.top + bbox.height - 8 * devicePixelRatio, wide, 8 * devicePixelRatio);
    }
    ctx.restore();
  }

  /** beyond marks values outside the axis range with arrows at the edge, at most one every few pixels. */
  #beyond(u, c) {
    const { ctx, bbox } = u;
    const { min, max } = u.scales.y;
    const r = 4 * devicePixelRatio;
    const marked = new Set();
    ctx.fillStyle = c.quiet;
    for (const ys of u.data.slice(1)) {
      for (const [i, v] of ys.entries()) {
        if (v === null || v === undefined || (v >= min && v <= max)) continue;
        const x = u.valToPos(u.data[0][i], 'x', true);
        const place = `${Math.round(x / r)}${v > max}`;
        if (x < bbox.left || x > bbox.left + bbox.width || marked.has(place)) continue;
        marked.add(place);
        const [y, away] = v > max ? [bbox.top, 1] : [bbox.top + bbox.height, -1];
        ctx.beginPath();
        ctx.moveTo(x, y);
        ctx.lineTo(x - r, y + away * r * 1.4);
        ctx.lineTo(x + r, y + away * r * 1.4);
        ctx.fill();
      }
    }
  }

  /** say shows the number of points, the values that cannot be drawn, and the newest value. */
  #say() {
    const name = this.panel.series[0];
    const { page } = this;
    const detail = page.range && page.detail(name);
    const s = detail || page.store.get(name);
    const n = within(s.steps, page.range);
    const thin = !sparse(name) && Boolean(detail ? detail.thinned : page.store.thinned);
    const what = thin ? `${count(n)} points: min, max and last of each interval` : n === 1 ? '1 point' : `${count(n)} points`;
    this.figure.querySelector('[data-part="points"]').textContent = what;
    this.figure.dataset.points = n;
    const marks = this.figure.querySelector('[data-part="marks"]');
    marks.replaceChildren(...this.#warnings());
    this.#read(this.#plot);
    const values = this.panel.labels ? [...this.figure.querySelectorAll('.key li')].map((li) => li.textContent).join(', ') : this.figure.querySelector('[data-part="now"]').textContent;
    this.area.setAttribute('aria-label', `${this.panel.title}: ${values || 'no value yet'}, ${what}`);
  }

  #warnings() {
    const out = [];
    const add = (text, tone = 'bad') => {
      const b = document.createElement('span');
      b.className = tone;
      b.textContent = ` ${text}`;
      out.push(b);
    };
    if (this.#nans.length) {
      const [step, v] = this.#nans[0];
      add(this.#nans.length === 1 ? `${value(v)} at step ${count(step)}` : `${count(this.#nans.length)} not finite, first ${value(v)} at step ${count(step)}`);
    }
    if (this.outliers) add(`${count(this.outliers)} outside the axis range`, 'quiet');
    if (this.#dropped) add(`${count(this.#dropped)} ≤ 0, hidden by log y`);
    return out;
  }

  #fit() {
    if (!this.#plot) return;
    const width = this.area.clientWidth;
    if (width > 0 && (width !== this.#plot.width || panelHeight(this.figure) !== this.#plot.height)) this.#plot.setSize({ width, height: panelHeight(this.figure) });
  }
}

/** Lower end of logarithmic axes: uPlot has no finer ticks, and smaller values are float32 rounding noise. */
const logFloor = 1e-15;

/** logRange returns the range of a logarithmic axis: whole powers of ten around the positive values, and around the target if positive. */
function logRange(lo, hi, target) {
  const held = [lo, hi, target].filter((v) => v > 0);
  if (held.length === 0) return [0.1, 1];
  const least = Math.max(logFloor, Math.min(...held));
  return uPlot.rangeLog(least, Math.max(least, ...held), 10, false);
}

function panelHeight(figure) {
  if (figure.classList.contains('whole')) return height.whole;
  return figure.closest('.decisive') ? height.large : height.small;
}

/** tick formats an axis label; labels are incr apart: 12k, 1.5M, 0.02, 25.998. */
function tick(v, incr) {
  const a = Math.abs(v);
  if (a >= 1e6) return `${trim(v / 1e6, incr / 1e6)}M`;
  if (a >= 1e4) return `${trim(v / 1e3, incr / 1e3)}k`;
  if (a !== 0 && a < 1e-3) return v.toExponential(Math.min(3, Math.max(0, Math.ceil(Math.log10(a / Math.abs(incr)) - 1e-9)))).replace('.0e', 'e').replaceAll('-', '−');
  return trim(v, incr);
}

/** short formats a value to three digits, for lists of values. */
function short(v) {
  return Number.isFinite(v) ? Number(v.toPrecision(3)) : v;
}

/** trim keeps the decimals that distinguish neighbouring labels. */
function trim(v, incr) {
  const decimals = Math.min(8, Math.max(0, Math.ceil(-Math.log10(Math.abs(incr) || 1) - 1e-9) + 1));
  return Number(v.toFixed(decimals)).toString().replace('-', '−');
}
