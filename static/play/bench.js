// The playground's benchmark, run with ?bench: the time from input to the image on the screen, in this browser and on the server.

const AIMS = { tiny: { one: 16, grid: 60, server: 50 }, small: { one: 33, grid: 150 } }; // ms, p95, on an idle machine
const ONE = 100; // samples
const GRIDS = 24;
const SERVER = 50;

/** quantile returns the p-quantile of times, by nearest rank. */
export function quantile(times, p) {
  const sorted = times.slice().sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(p * sorted.length) - 1)];
}

/** after resolves once the browser has finished its current task. */
const after = () => new Promise((done) => {
  const channel = new MessageChannel();
  channel.port1.onmessage = () => done(performance.now());
  channel.port2.postMessage(0);
});

/** painted resolves when everything drawn so far is on the screen. */
const painted = () => new Promise((done) => requestAnimationFrame(() => after().then(done)));

/** still resolves when all work for the last edit is done. */
async function still(app) {
  await app.facts.refreshed;
  await new Promise((done) => requestIdleCallback(done));
}

/** changed resolves when test holds; it is checked whenever an attribute of the element changes. */
function changed(element, test) {
  return new Promise((done) => {
    if (test()) return done();
    const watch = new MutationObserver(() => { if (test()) { watch.disconnect(); done(); } });
    watch.observe(element, { attributes: true });
  });
}

/**
 * one measures slider moves until the blended image is painted. Browsers deliver input at the start of a frame, so it moves the slider there:
 * an image drawn synchronously appears in the same frame.
 */
async function one(app) {
  await still(app);
  const slider = [...document.querySelectorAll('[data-blend]')].find((s) => !s.disabled);
  const image = document.getElementById('image');
  const times = [];
  for (let i = 1; i <= ONE; i++) {
    const before = image.dataset.codes;
    slider.value = 1 + ((37 * i) % 99); // 37 and 99 are coprime: another image each time
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

/** grid measures the time from an edit of A until every swap of the table is painted, with none of its images cached. */
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

/** server measures the time from requesting an image from the server until it is painted. */
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

/** shift returns the page's cumulative layout shift since it was opened; NaN if the browser does not measure it. */
async function shift() {
  if (!PerformanceObserver.supportedEntryTypes.includes('layout-shift')) return NaN;
  let sum = 0;
  const watch = new PerformanceObserver((list) => { for (const e of list.getEntries()) if (!e.hadRecentInput) sum += e.value; });
  watch.observe({ type: 'layout-shift', buffered: true });
  await new Promise((done) => setTimeout(done, 500));
  watch.disconnect();
  return sum;
}

/** run measures and shows the results below the page. */
export async function run(app) {
  await app.decoder.ready;
  await app.facts.ready;
  dispatchEvent(new PointerEvent('pointermove')); // as before a user's first edit: from here on the page decodes, too
  const moved = await shift(); // before the results table is added
  const section = document.createElement('section');
  section.className = 'notice';
  section.dataset.testid = 'play-bench';
  section.setAttribute('role', 'status');
  section.textContent = 'Measuring …';
  document.getElementById('play').append(section);
  const aims = AIMS[app.data.preset] ?? {};
  const rows = [];
  if (app.decoder.local) {
    rows.push(['One image in this browser, input to paint', await one(app), aims.one], ['Table of swaps in this browser, input to paint', await grid(app), aims.grid]);
  }
  if (app.store.remote) rows.push(['One image from the server, request to paint', await server(app), aims.server]);
  const table = document.createElement('table');
  const line = (tag, texts) => {
    const tr = table.insertRow();
    for (const text of texts) tr.append(Object.assign(document.createElement(tag), { textContent: text }));
  };
  const ms = (t) => `${t.toFixed(1)} ms`;
  line('th', ['', 'Median', 'p95', 'Samples', 'Target p95']);
  for (const [name, times, aim] of rows) line('td', [name, ms(quantile(times, 0.5)), ms(quantile(times, 0.95)), times.length, aim ? `${aim} ms` : '–']);
  const local = app.decoder.local ? `${app.decoder.local.picture.toFixed(1)} ms per image` : 'decoded on the server';
  section.replaceChildren(table, Object.assign(document.createElement('p'), { className: 'quiet', textContent: `${app.data.preset ?? ''}, ${local}, ${navigator.hardwareConcurrency} logical processors, ${navigator.userAgent}. Cumulative layout shift on load: ${moved.toFixed(4)}.` }));
  section.dataset.ready = 'yes';
}
