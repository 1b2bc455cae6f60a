// The benchmark of the playground, at an address with ?bench: how long from a hand's move to the picture on the screen, in this browser and
// over the server.

const AIMS = { tiny: { one: 16, grid: 60, server: 50 }, small: { one: 33, grid: 150 } }; // ms, p95, on a machine that does nothing else
const ONE = 100; // moves
const GRIDS = 24;
const SERVER = 50;

/** quantile is the least of times that a part p of them does not exceed. */
export function quantile(times, p) {
  const sorted = times.slice().sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(p * sorted.length) - 1)];
}

/** after resolves once the browser is done with what it does now. */
const after = () => new Promise((done) => {
  const channel = new MessageChannel();
  channel.port1.onmessage = () => done(performance.now());
  channel.port2.postMessage(0);
});

/** painted resolves when what was drawn until now is on the screen. */
const painted = () => new Promise((done) => requestAnimationFrame(() => after().then(done)));

/** still resolves when nothing is left to do of the last edit. */
async function still(app) {
  await app.facts.refreshed;
  await new Promise((done) => requestIdleCallback(done));
}

/** changed resolves when test holds, looked at whenever an attribute of the element changes. */
function changed(element, test) {
  return new Promise((done) => {
    if (test()) return done();
    const watch = new MutationObserver(() => { if (test()) { watch.disconnect(); done(); } });
    watch.observe(element, { attributes: true });
  });
}

/**
 * one measures moves of a slider until the picture between codes is painted. Browsers hand moves over when they begin a frame, so it moves
 * there: a picture that is drawn at once is on the screen with the same frame.
 */
async function one(app) {
  await still(app);
  const slider = [...document.querySelectorAll('[data-blend]')].find((s) => !s.disabled);
  const image = document.getElementById('image');
  const times = [];
  for (let i = 1; i <= ONE; i++) {
    const before = image.dataset.codes;
    slider.value = 1 + ((37 * i) % 99); // 37 and 99 share no factor: another picture each time
    await new Promise(requestAnimationFrame);
    const start = performance.now();
    let framed = 0;
    const frame = after().then((now) => { framed = now; });
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    await changed(image, () => image.dataset.codes !== before);
    if (!framed) await frame;
    else framed = await painted();
    times.push(framed - start);
  }
  slider.value = 0;
  slider.dispatchEvent(new Event('input', { bubbles: true }));
  return times;
}

/** grid measures a code put into A until every swap of the table is painted; its pictures were not decoded before. */
async function grid(app) {
  const table = document.getElementById('grid');
  const times = [];
  for (let i = 0; i < GRIDS; i++) {
    const code = (app.state.codes[0] + 1) % app.data.k;
    await still(app);
    const start = performance.now();
    app.put('a', 0, code);
    await changed(table, () => !table.hasAttribute('data-waiting'));
    times.push((await painted()) - start);
  }
  return times;
}

/** server measures a picture asked of the server until it is painted. */
async function server(app) {
  const canvas = document.createElement('canvas');
  Object.assign(canvas, { width: app.shape.w, height: app.shape.h });
  const times = [];
  await still(app);
  for (let i = 0; i < SERVER; i++) {
    const codes = app.state.b.codes.slice();
    codes[1 % codes.length] = (codes[1 % codes.length] + 1 + i) % app.data.k;
    const start = performance.now();
    const [pixels] = await app.store.remote.decode('held', [{ a: codes }], new AbortController().signal);
    app.paint(canvas, pixels);
    times.push((await painted()) - start);
  }
  return times;
}

/** shift is how far parts of the page have moved by themselves since it was opened, as browsers count it; NaN where they do not. */
async function shift() {
  if (!PerformanceObserver.supportedEntryTypes.includes('layout-shift')) return NaN;
  let sum = 0;
  const watch = new PerformanceObserver((list) => { for (const e of list.getEntries()) if (!e.hadRecentInput) sum += e.value; });
  watch.observe({ type: 'layout-shift', buffered: true });
  await new Promise((done) => setTimeout(done, 500));
  watch.disconnect();
  return sum;
}

/** run measures and writes the figures beneath the page. */
export async function run(app) {
  await app.decoder.ready;
  await app.facts.ready;
  dispatchEvent(new PointerEvent('pointermove')); // as a hand does before its first edit: from then on the page decodes, too
  const moved = await shift(); // before this page's own table
  const section = document.createElement('section');
  section.className = 'notice';
  section.dataset.testid = 'play-bench';
  section.setAttribute('role', 'status');
  section.textContent = 'Measuring …';
  document.getElementById('play').append(section);
  const aims = AIMS[app.data.preset] ?? {};
  const rows = [];
  if (app.decoder.local) {
    rows.push(['One picture in this browser, move to paint', await one(app), aims.one], ['Table of swaps in this browser, move to paint', await grid(app), aims.grid]);
  }
  if (app.store.remote) rows.push(['One picture by the server, request to paint', await server(app), aims.server]);
  const table = document.createElement('table');
  const line = (tag, texts) => {
    const tr = table.insertRow();
    for (const text of texts) tr.append(Object.assign(document.createElement(tag), { textContent: text }));
  };
  const ms = (t) => `${t.toFixed(1)} ms`;
  line('th', ['', 'Median', 'p95', 'Moves', 'Aim of p95']);
  for (const [name, times, aim] of rows) line('td', [name, ms(quantile(times, 0.5)), ms(quantile(times, 0.95)), times.length, aim ? `${aim} ms` : '–']);
  const local = app.decoder.local ? `${app.decoder.local.picture.toFixed(1)} ms per picture` : 'the server decodes';
  section.replaceChildren(table, Object.assign(document.createElement('p'), { className: 'quiet', textContent: `${app.data.preset ?? ''}, ${local}, ${navigator.hardwareConcurrency} processors, ${navigator.userAgent}. Layout shift while the page opened: ${moved.toFixed(4)}.` }));
  section.dataset.ready = 'yes';
}
