// Files that a frozen page creates itself: images, the animation, codes, the swap figure. The live page downloads them from the server.

import { format, interpolation } from './codes.js';
import { svg } from './names.js';
import { paint } from './pixels.js';

const SCALE = 4; // of images in the animation
const LINE = 18; // height of its caption in pixels
const SHORT = 60; // hundredths of a second per frame; twice as long at the ends

/** lane returns the lane of a file's images. A second click on its link starts again; other files do not replace it. */
const lane = (kind) => `file ${kind}`;

/** made returns a file of the page's state, {name, blob}; kind is that of the download links. */
export async function made(kind, app) {
  const name = `slotscope-${app.data.key.slice(0, 8)}`;
  const [before, after] = kind.split('.');
  if (before === 'figure') return { name: `${name}-swaps.${after}`, blob: await figure(app, after) };
  if (kind === 'codes.json') return { name: `${name}-codes.json`, blob: new Blob([JSON.stringify(codes(app), null, 2)], { type: 'application/json' }) };
  if (before === 'animation') return { name: `${name}-${kind}`, blob: await animation(app, after) };
  const tuple = app.rowCodes();
  const [pixels] = await app.decoder.decode(lane(kind), [tuple]);
  const canvas = scaled(canvasOf(pixels, app.shape), kind === 'png4' ? 4 : 1);
  return { name: `${name}-${format(tuple)}.png`, blob: await png(canvas) };
}

/** save downloads a file. */
export async function save(kind, app) {
  const { name, blob } = await made(kind, app);
  const link = Object.assign(document.createElement('a'), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // after the browser has written it
}

function codes({ data, state, slots }) {
  const values = (tuple) => (data.real ? tuple.map((c) => (c - (data.k - 1) / 2) / 64) : undefined);
  return {
    checkpoint: data.key, a: state.a.index, b: state.b.index, codes: state.codes, bcodes: state.bcodes, values: values(state.codes), bvalues: values(state.bcodes), order: state.order,
    slots: slots.map(({ index, called, name }) => ({ slot: index, name: called || name })),
  };
}

function canvasOf(pixels, shape) {
  const canvas = Object.assign(document.createElement('canvas'), { width: shape.w, height: shape.h });
  paint(canvas, pixels, shape);
  return canvas;
}

function scaled(source, by, below = 0) {
  const canvas = Object.assign(document.createElement('canvas'), { width: source.width * by, height: source.height * by + below });
  const ctx = canvas.getContext('2d', { alpha: false });
  ctx.imageSmoothingEnabled = false;
  ctx.drawImage(source, 0, 0, source.width * by, source.height * by);
  return canvas;
}

const png = (canvas) => new Promise((done, failed) => { canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error('This browser cannot create a PNG of this size.'))), 'image/png'); });

/** animation returns the interpolation from A to B and back, with captions: a GIF, or an animated PNG as specified by APNG 1.0. */
async function animation(app, kind) {
  const { codes: a, bcodes: b, order } = app.state;
  const frames = [];
  for (const [from, to, first, last] of [[a, b, 'A', 'B'], [b, a, 'B', 'A']]) {
    const tuples = interpolation(from, to, order);
    const decoded = await app.decoder.decode(lane(`animation.${kind}`), tuples);
    decoded.forEach((pixels, j) => {
      const end = j === 0 ? first : j === tuples.length - 1 ? last : null;
      const text = end ?? `${first} + ${last}’s slot ${order[j - 1]}${app.named(order[j - 1])}`;
      frames.push({ canvas: captioned(canvasOf(pixels, app.shape), text), delay: end ? 2 * SHORT : SHORT });
    });
  }
  if (kind === 'png') return new Blob([await animated(frames)], { type: 'image/apng' });
  const gif = await import('./gif.js');
  const [{ width, height }] = frames.map(({ canvas }) => canvas);
  return new Blob([gif.animated(frames.map(({ canvas, delay }) => ({ data: canvas.getContext('2d').getImageData(0, 0, width, height).data, delay })), width, height)], { type: 'image/gif' });
}

function captioned(source, text) {
  const canvas = scaled(source, SCALE, LINE);
  const ctx = canvas.getContext('2d', { alpha: false });
  ctx.fillStyle = 'white';
  ctx.fillRect(0, canvas.height - LINE, canvas.width, LINE);
  ctx.fillStyle = '#282828';
  ctx.font = '13px sans-serif';
  ctx.fillText(text, 3, canvas.height - 5, canvas.width - 6);
  return canvas;
}

/** animated joins frames [{canvas, delay}], all of one size, into an animated PNG. */
async function animated(frames) {
  const out = [new Uint8Array([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10])];
  let sequence = 0;
  for (const [at, { canvas, delay }] of frames.entries()) {
    const parts = chunksOf(new Uint8Array(await (await png(canvas)).arrayBuffer()));
    if (at === 0) out.push(chunk('IHDR', parts.get('IHDR')), chunk('acTL', words(frames.length, 0)));
    out.push(chunk('fcTL', joined(words(sequence++, canvas.width, canvas.height, 0, 0), new Uint8Array([delay >> 8, delay & 255, 0, 100, 0, 0]))));
    out.push(at === 0 ? chunk('IDAT', parts.get('IDAT')) : chunk('fdAT', joined(words(sequence++), parts.get('IDAT'))));
  }
  return joined(...out, chunk('IEND', new Uint8Array()));
}

function words(...numbers) {
  const view = new DataView(new ArrayBuffer(4 * numbers.length));
  numbers.forEach((n, i) => { view.setUint32(4 * i, n); });
  return new Uint8Array(view.buffer);
}

function joined(...parts) {
  const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) { out.set(p, at); at += p.length; }
  return out;
}

/** chunksOf splits a PNG into its chunks, joining those of the same kind. */
function chunksOf(raw) {
  const out = new Map();
  const view = new DataView(raw.buffer, raw.byteOffset);
  for (let at = 8; at + 12 <= raw.length;) {
    const n = view.getUint32(at);
    const kind = String.fromCharCode(...raw.subarray(at + 4, at + 8));
    out.set(kind, joined(out.get(kind) ?? new Uint8Array(), raw.subarray(at + 8, at + 8 + n)));
    at += 12 + n;
  }
  return out;
}

function chunk(kind, body) {
  const named = joined(Uint8Array.from(kind, (c) => c.charCodeAt(0)), body);
  return joined(words(body.length), named, words(crc(named)));
}

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});

function crc(bytes) {
  let c = 0xffffffff;
  for (const b of bytes) c = CRC[(c ^ b) & 255] ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}

const [WIDE, HIGH, TEXT, MARGIN] = [104, 80, 13, 12]; // of the figure: column width, image size, line height, margin

/** figure returns the current table of pairs × groups, with the model's name: SVG, PDF, or PNG at 2×. */
async function figure(app, kind) {
  const section = document.getElementById('many');
  const heads = [...section.querySelectorAll('thead th')].map((th) => th.textContent);
  const rows = [...section.querySelectorAll('tbody tr')].map((tr) => [...tr.cells].map((cell) => ({ canvas: cell.querySelector('canvas'), lines: cell.querySelector('canvas') ? [...cell.querySelectorAll('.fact > span')].map((s) => s.textContent) : [cell.textContent] })));
  const tall = rows.map((row) => HIGH + 6 + TEXT * Math.max(1, ...row.map(({ canvas, lines }) => (canvas ? lines.length : 0))));
  const width = 2 * MARGIN + WIDE * heads.length;
  const height = 2 * MARGIN + 4 * TEXT + tall.reduce((a, b) => a + b, 0) + 2 * TEXT;
  const things = []; // as in pdf.js
  const write = (text, x, y, how = {}) => things.push({ text, x, y, size: 10, bold: false, ink: 0.07, ...how });
  const title = `Swaps of groups of slots: ${document.title.replace('Slotscope: ', '')}, step ${app.data.step.toLocaleString('en')}`;
  write(title, MARGIN, MARGIN + TEXT, { size: 13, bold: true });
  heads.forEach((text, i) => write(text, MARGIN + i * WIDE, MARGIN + 3 * TEXT, { bold: true }));
  let y = MARGIN + 4 * TEXT;
  rows.forEach((row, r) => {
    row.forEach(({ canvas, lines }, i) => {
      const x = MARGIN + i * WIDE;
      if (canvas) things.push({ canvas, x, y, side: HIGH });
      lines.forEach((text, l) => write(shortened(text), x, y + (canvas ? HIGH : 0) + TEXT * (l + 1), { ink: canvas ? 0.27 : 0.07 }));
    });
    y += tall[r];
  });
  write(section.querySelector('[data-part="said"]').textContent, MARGIN, y + TEXT, { ink: 0.27 });
  write('A and B are reconstructions; every other image is A with B’s codes for the group.', MARGIN, y + 2 * TEXT, { ink: 0.27 });
  if (kind === 'pdf') return (await import('./pdf.js')).page(width, height, things, title);
  const blob = new Blob([new XMLSerializer().serializeToString(drawing(width, height, things))], { type: 'image/svg+xml' });
  return kind === 'svg' ? blob : raster(blob, width, height);
}

/** drawing renders things as SVG. */
function drawing(width, height, things) {
  const root = svg('svg', { xmlns: 'http://www.w3.org/2000/svg', width, height, viewBox: `0 0 ${width} ${height}`, 'font-family': 'sans-serif' });
  root.append(svg('rect', { width, height, fill: '#fff' }));
  for (const { text, x, y, size, bold, ink, canvas, side } of things) {
    if (canvas) {
      root.append(svg('image', { x, y, width: side, height: side, href: canvas.toDataURL(), style: 'image-rendering: pixelated' }));
      continue;
    }
    const grey = Math.round(255 * ink);
    const e = svg('text', { x, y, 'font-size': size, fill: `rgb(${grey},${grey},${grey})`, ...(bold ? { 'font-weight': 600 } : {}) });
    e.textContent = text;
    root.append(e);
  }
  return root;
}

const shortened = (text) => (text.length > 20 ? `${text.slice(0, 19)}…` : text);

async function raster(blob, width, height) {
  const image = new Image();
  image.src = `data:image/svg+xml;base64,${btoa(Array.from(new Uint8Array(await blob.arrayBuffer()), (b) => String.fromCharCode(b)).join(''))}`;
  await image.decode();
  const canvas = Object.assign(document.createElement('canvas'), { width: 2 * width, height: 2 * height });
  canvas.getContext('2d', { alpha: false }).drawImage(image, 0, 0, 2 * width, 2 * height);
  return png(canvas);
}
