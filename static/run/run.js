// The page of a run: receives points, draws the charts in view and updates the header.
import { plain, readView, sayUnread, writeView } from './address.js';
import { Chart, forgetColours } from './chart.js';
import { RunHead } from './head.js';
import { ChartMenu } from './menu.js';
import { Sheet } from './sheet.js';
import { clock, Smoother, Store } from './series.js';
import { Stream } from './stream.js';
import { count } from '../shared/format.js';

const tooMany = 4000; // runs with more points per series are loaded thinned
const columns = 1000;
const redrawEvery = 200; // ms
const settled = 200; // ms without movement before a zoomed view requests every point

const root = document.querySelector('article.run');
const start = JSON.parse(document.getElementById('run-data').textContent);
const api = `/api/runs/${start.run.id}`;

async function getJSON(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  return answer.json();
}

/** averages holds the server's moving averages, to be continued here; null if none. */
function averages(samples, alpha) {
  if (!samples) return null;
  const s = new Smoother(alpha);
  s.seed(samples);
  s.seeded = true;
  return s;
}

const begin = readView(location.search);
sayUnread(root.querySelector('[data-part="unread"]'), location.search);

/** View is the state shared by all charts: the points and the display settings. */
class View {
  store = new Store();
  id = start.run.id;
  alpha = begin.smooth;
  log = begin.log;
  timed = begin.timed;
  range = begin.range; // steps in view, fractional during a gesture; null for all
  ref = begin.ref; // the reference run, or 'all' earlier ones
  references = []; // their stores; change them only together with the charts, which have one line each
  large = begin.large; // key of the enlarged chart
  #axes = begin.axes;
  steps = start.run.config.steps;
  #details = new Map(); // full points of the range in view, by series name
  #smoothers = new Map();
  #clock = { version: -1, at: null };

  toX = (step) => (this.timed ? this.#seconds()(step) : step);

  /** toStep is the inverse of toX, by bisection: seconds grow with steps. */
  toStep = (x) => {
    if (!this.timed) return x;
    let lo = 0;
    let hi = this.store.head;
    while (hi - lo > 1) {
      const mid = (lo + hi) >> 1;
      if (this.toX(mid) < x) lo = mid;
      else hi = mid;
    }
    return hi;
  };

  #seconds() {
    if (this.#clock.version !== this.store.version) {
      this.#clock = { version: this.store.version, at: clock(this.store.get('images_per_second'), start.run.config.batch) };
    }
    return this.#clock.at;
  }

  /** axes returns the y-axis settings of a chart. */
  axes(key) {
    return this.#axes.get(key) ?? plain();
  }

  setAxes(key, axes) {
    this.#axes.set(key, axes);
    charts.find((c) => c.key === key)?.rebuild();
    this.tell();
  }

  /** enlarge toggles a chart between full width and normal size. */
  enlarge(chart) {
    this.large = this.large === chart.key ? '' : chart.key;
    for (const c of charts) {
      c.figure.classList.toggle('whole', c.key === this.large);
      c.rebuild();
    }
    chart.figure.scrollIntoView({ block: 'nearest' });
    this.tell();
  }

  /** refer draws the curves of an earlier run as a reference; 'all' for every offered run, '' for none. */
  async refer(id) {
    this.ref = id;
    this.tell();
    const offered = [...root.querySelectorAll('[name="ref"] option')].map((o) => o.value).filter((v) => v && v !== 'all');
    const ids = id === 'all' ? offered : id ? [id] : [];
    const pages = await Promise.all(ids.map((one) => getJSON(`/api/runs/${one}/points?columns=${columns}`).catch(() => null)));
    if (this.ref !== id) return;
    this.references = pages.filter(Boolean).map((page) => {
      const store = new Store();
      store.replace(page, true);
      return store;
    });
    rebuild();
  }

  /** cross reports the step under the crosshair, null if none. */
  cross(step) {
    sheet.cross(step);
    evidence?.then((e) => e.cross(step));
  }

  /** tell writes the view to the URL, so that a link shows the same view. */
  tell() {
    const open = [...root.querySelectorAll('details[data-group][open]')].map((d) => d.dataset.group);
    const query = writeView({ smooth: this.alpha, timed: this.timed, log: this.log, range: this.range, ref: this.ref, large: this.large, open, axes: this.#axes });
    if (query !== location.search) history.replaceState(null, '', `/runs/${this.id}${query}${location.hash}`);
  }

  detail(name) {
    return this.#details.get(name);
  }

  setDetails(page, thinned) {
    this.#details.clear();
    if (!page) return;
    const part = new Store();
    part.replace(page, thinned);
    for (const [name, s] of part.series) this.#details.set(name, { steps: s.steps, values: s.values, thinned, smooth: averages(page.smoothed?.[name], this.alpha) });
  }

  /** smooth returns the moving average of a series. For thinned points it continues the server's average, which used every point. */
  smooth(name) {
    const detail = this.range && this.#details.get(name)?.smooth;
    if (detail?.alpha === this.alpha) return detail;
    let s = this.#smoothers.get(name);
    if (!s || s.alpha !== this.alpha) this.#smoothers.set(name, (s = new Smoother(this.alpha)));
    if (!this.store.thinned || s.seeded) s.extend(this.store.get(name));
    return s;
  }

  forgetSmooth() {
    this.#smoothers.clear();
  }

  seed(smoothed) {
    for (const [name, samples] of Object.entries(smoothed)) this.#smoothers.set(name, averages(samples, this.alpha));
  }

  /** zoom shows a range of steps; moving means that another call follows immediately. */
  zoom(range, moving = false) {
    this.range = range;
    this.onzoom(range, moving);
  }
}

let evidence = null; // swaps and factors by checkpoint, loaded when expanded
root.querySelector('[data-part="evidence"]').addEventListener('toggle', (e) => {
  if (evidence) evidence.then((shown) => e.target.open && shown.open());
  else if (e.target.open) evidence = import('./evidence.js').then(({ Evidence }) => new Evidence(e.target, view.id));
});

const view = new View();
const head = new RunHead(root, start.run);
const sheet = new Sheet(root.querySelector('[data-part="samples"]'), api, start.samples, start.run);
const charts = [...root.querySelectorAll('[data-panel]')].map((el) => new Chart(el, start.panels[Number(el.dataset.panel)], view));
new ChartMenu(root.querySelector('#chart-menu'), charts, view);
const byFigure = new Map(charts.map((c) => [c.figure, c]));

/** Charts exist only while they are near the viewport. */
const seen = new IntersectionObserver(
  (entries) => {
    for (const e of entries) {
      const chart = byFigure.get(e.target);
      if (e.isIntersecting) chart.mount();
      else chart.unmount();
    }
    if (view.range) loadDetail();
    if (view.alpha > 0 && view.store.thinned) loadSmooth();
  },
  { rootMargin: '150px' },
);

const mounted = () => charts.filter((c) => c.mounted);
const namesInView = () => [...new Set(mounted().flatMap((c) => c.panel.series))];

let redrawTimer = 0;
function redraw() {
  if (redrawTimer) return;
  redrawTimer = setTimeout(() => {
    redrawTimer = 0;
    if (document.hidden) return;
    for (const c of mounted()) c.draw();
    const psnr = view.store.get('psnr/eval');
    head.psnr(psnr.values.at(-1) ?? null, psnr.last);
  }, redrawEvery);
}

function rebuild() {
  for (const c of mounted()) c.rebuild();
}

/** load fetches all points so far: every point of a short run, thinned points of a long one. */
async function load() {
  const { count: stored, head: last } = await getJSON(`${api}/points?names=total&columns=1`);
  head.gaps(stored, last);
  const thin = last > tooMany;
  const page = await getJSON(`${api}/points?${thin ? `columns=${columns}` : ''}`);
  view.store.replace(page, thin);
  view.forgetSmooth();
  if (view.range && view.range[0] >= page.head) view.zoom(null); // the URL's range is beyond the end
  if (thin && view.alpha > 0) await loadSmooth();
  redraw();
}

let detailTicket = 0;
let detailTimer = 0;
async function loadDetail() {
  const range = view.range;
  const ticket = ++detailTicket;
  if (!range || !view.store.thinned) return;
  const thin = range[1] - range[0] > tooMany;
  const query = new URLSearchParams({ since: Math.max(0, Math.floor(range[0]) - 1), until: Math.ceil(range[1]), names: namesInView().join(',') });
  if (thin) query.set('columns', columns);
  if (view.alpha > 0) query.set('smooth', view.alpha);
  try {
    const page = await getJSON(`${api}/points?${query}`);
    if (ticket !== detailTicket) return;
    view.setDetails(page, thin);
    redraw();
  } catch {
    // keep the thinned points; the next zoom tries again
  }
}

let smoothTicket = 0;
async function loadSmooth() {
  const ticket = ++smoothTicket;
  const alpha = view.alpha;
  const query = new URLSearchParams({ columns, until: view.store.head, smooth: alpha, only: 'smoothed', names: namesInView().join(',') });
  const page = await getJSON(`${api}/points?${query}`);
  if (ticket !== smoothTicket || alpha !== view.alpha) return;
  view.seed(page.smoothed ?? {});
  redraw();
}

view.onzoom = (range, moving) => {
  detailTicket++; // discard responses for other views
  clearTimeout(detailTimer);
  view.setDetails(null);
  tools.zoomed(range);
  for (const c of mounted()) c.draw();
  if (range) detailTimer = setTimeout(loadDetail, moving ? settled : 0);
  if (!moving) view.tell();
};

/** tools is the form above the charts: smoothing, log y, x axis, zoom. */
const tools = {
  form: root.querySelector('[data-part="tools"]'),
  timer: 0,

  start() {
    const f = this.form.elements;
    this.form.hidden = false;
    this.form.onsubmit = (e) => e.preventDefault();
    f.smooth.oninput = () => this.smooth(Number(f.smooth.value));
    f.raw.onclick = () => this.smooth(0);
    f.log.onchange = () => ((view.log = f.log.checked), rebuild(), view.tell());
    f.x.onchange = () => ((view.timed = f.x.value === 'time'), rebuild(), view.tell());
    f.reset.onclick = () => view.zoom(null);
    addEventListener('keydown', (e) => this.key(e));
    f.keys.onclick = () => document.getElementById('keys').showModal();
    if (f.ref) {
      f.ref.onchange = () => view.refer(f.ref.value);
      f.ref.value = view.ref;
      if (f.ref.value) view.refer(view.ref);
    }
    f.log.checked = view.log;
    f.x.value = view.timed ? 'time' : 'step';
    this.level();
    this.zoomed(view.range);
  },

  /** level shows the smoothing strength. */
  level() {
    const f = this.form.elements;
    f.smooth.value = view.alpha;
    f['smooth-now'].value = view.alpha === 0 ? 'off' : view.alpha.toFixed(2);
  },

  smooth(alpha) {
    alpha = Math.min(0.99, Math.max(0, Math.round(alpha * 100) / 100));
    const lines = view.alpha > 0 !== alpha > 0;
    const same = alpha === view.alpha;
    view.alpha = alpha;
    this.level();
    if (same) return;
    view.tell();
    view.forgetSmooth();
    if (lines) rebuild();
    clearTimeout(this.timer);
    if (alpha > 0 && view.store.thinned) this.timer = setTimeout(() => (loadSmooth(), loadDetail()), 150);
    redraw();
  },

  zoomed(range) {
    this.form.elements.reset.disabled = !range;
    this.form.querySelector('[data-part="view"]').textContent = range ? `steps ${count(range[0])} to ${count(range[1])}` : '';
  },

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest('input, select, textarea, [popover]:popover-open')) return;
    if (e.key === '[' || e.key === ']') this.smooth(view.alpha + (e.key === '[' ? -0.05 : 0.05));
    else if (e.key === 'l') this.form.elements.log.click();
    else if (e.key === '?') this.form.elements.keys.click();
    else if (e.key === 'e') {
      const chart = byFigure.get(e.target.closest('[data-panel]'));
      if (chart) view.enlarge(chart);
    }
  },
};

const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
let alerted = 0; // ID of the newest alert shown
const notifyBox = root.querySelector('[data-part="notify"]');
const notifier = notifyBox && import('./notify.js').then(({ Notifier }) => ((notifyBox.hidden = false), new Notifier(notifyBox)));

const stream = new Stream(`${scheme}://${location.host}/ws/runs/${start.run.id}`, () => ({ since: view.store.head, attempt: view.store.attempt, alerted }), {
  hello(f) {
    alerted = f.alerted;
    head.behind(f.head - view.store.head);
  },
  alert(f) {
    alerted = f.alert.id;
    notifier?.then((n) => n.show(f.alert));
    renewing?.then((r) => r.overview());
  },
  points(f) {
    if (!view.store.append(f)) {
      stream.greet(); // points are missing: request from the page's last step
      return;
    }
    head.arrived(view.store.head);
    if (view.store.longest > 2 * tooMany) thinAgain();
    redraw();
  },
  rewind(f) {
    view.store.rewind(f.to, f.attempt);
    view.forgetSmooth();
    if (view.range && view.range[0] >= f.to) view.zoom(null);
    if (f.to === 0) load().then(() => stream.greet());
    redraw();
  },
  status(f) {
    head.show(f.run);
    sheet.follow(f.run);
    renew(f.run);
  },
  error: (f) => head.problem(f.error),
  bye(f) {
    if (f.reason === 'the run was deleted') {
      head.deleted();
      stream.end();
    }
  },
  state: (name, detail) => head.connection(name, detail),
});

let thinning = false;
async function thinAgain() {
  if (thinning) return;
  thinning = true;
  try {
    await load();
    stream.greet();
  } finally {
    thinning = false;
  }
}

const log = root.querySelector('[data-part="log"]');
let renewing = null; // the parts refreshed while the run is active

/** renew refreshes the parts that change while a run is active; its module is not loaded for a run at rest. */
async function renew(run) {
  const waits = () => head.live || 'evaluating' in root.querySelector('[data-part="overview"]').dataset;
  if (!renewing && !waits() && run?.state === start.run.state) return;
  renewing ??= import('./renew.js').then(({ Renewal }) => new Renewal(root, start.run, view.store));
  (await renewing)[run ? 'follow' : 'tick'](run ?? head.run);
}

/** proof loads the number of stored steps from the server. */
async function proof() {
  if (document.hidden) return;
  const page = await getJSON(`${api}/points?names=total&columns=1`).catch(() => null);
  if (page) head.gaps(page.count, page.head);
}

for (const group of root.querySelectorAll('details[data-group]')) {
  group.open = begin.open.includes(group.dataset.group);
  group.addEventListener('toggle', () => view.tell());
}
for (const c of charts) c.figure.classList.toggle('whole', c.key === view.large);
tools.start();
root.addEventListener('click', (e) => e.target.closest('[data-part="plot"]') || mounted().forEach((c) => c.rest()));
log.scrollTop = log.scrollHeight;
addEventListener('online', () => stream.wake());
document.addEventListener('visibilitychange', () => {
  if (document.hidden) return;
  stream.wake();
  redraw();
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  forgetColours();
  rebuild();
});
setInterval(() => head.live && proof(), 5000);
setInterval(() => renew(), 5000);
for (const box of root.querySelectorAll('[data-open]')) box.showPopover(); // rejected dialogs, with the error
if (location.pathname !== `/runs/${start.run.id}`) history.replaceState(null, '', `/runs/${start.run.id}`); // replace the URL of a rejected form

load()
  .catch(() => head.problem('Failed to load earlier points; retrying with the live ones.'))
  .finally(() => {
    for (const c of charts) seen.observe(c.figure);
    stream.open();
  });
