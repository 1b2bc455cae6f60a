// Animated GIFs, as specified by GIF89a. Every frame has its own palette, by median cut.

const COLOURS = 256;
const LONGEST = 4096; // LZW codes have at most 12 bits

/** animated returns a looping GIF of frames [{data, delay}]: RGBA of width × height, and hundredths of a second. */
export function animated(frames, width, height) {
  const out = [...bytes('GIF89a'), ...short(width), ...short(height), 0, 0, 0, 0x21, 0xff, 11, ...bytes('NETSCAPE2.0'), 3, 1, 0, 0, 0];
  for (const { data, delay } of frames) {
    const { palette, pixels } = quantized(data);
    out.push(0x21, 0xf9, 4, 0, ...short(delay), 0, 0, 0x2c, 0, 0, 0, 0, ...short(width), ...short(height), 0x87, ...palette, 8);
    const packed = lzw(pixels);
    for (let at = 0; at < packed.length; at += 255) {
      const block = packed.slice(at, at + 255);
      out.push(block.length, ...block);
    }
    out.push(0);
  }
  out.push(0x3b);
  return Uint8Array.from(out);
}

const bytes = (text) => Array.from(text, (c) => c.charCodeAt(0));
const short = (n) => [n & 255, n >> 8];

/** quantized returns a palette of 256 colours and each pixel's index in it. It is exact for up to 256 colours. */
export function quantized(data) {
  const counts = new Map();
  const colourAt = (at) => (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];
  for (let at = 0; at < data.length; at += 4) counts.set(colourAt(at), (counts.get(colourAt(at)) ?? 0) + 1);
  const boxes = [box([...counts])];
  while (boxes.length < COLOURS) {
    const widest = boxes.reduce((best, b, i) => (b.error > boxes[best].error ? i : best), 0);
    if (boxes[widest].colours.length < 2) break;
    boxes.splice(widest, 1, ...halves(boxes[widest]));
  }
  const palette = new Array(3 * COLOURS).fill(0);
  const place = new Map();
  boxes.forEach(({ colours }, i) => {
    const total = colours.reduce((sum, [, n]) => sum + n, 0);
    for (let ch = 0; ch < 3; ch++) palette[3 * i + ch] = Math.round(colours.reduce((sum, [colour, n]) => sum + n * channel(colour, ch), 0) / total);
    for (const [colour] of colours) place.set(colour, i);
  });
  return { palette, pixels: Uint8Array.from({ length: data.length / 4 }, (_, p) => place.get(colourAt(4 * p))) };
}

const channel = (colour, ch) => (colour >> (16 - 8 * ch)) & 255;

/** box is a set of colours [[colour, count]] with the channel of the widest range. */
function box(colours) {
  const ranges = [0, 1, 2].map((ch) => {
    let [least, most] = [255, 0];
    for (const [colour] of colours) { const v = channel(colour, ch); if (v < least) least = v; if (v > most) most = v; }
    return most - least;
  });
  const along = ranges.indexOf(Math.max(...ranges));
  return { colours, along, error: ranges[along] ** 2 * Math.sqrt(colours.length) }; // the square root leaves room for rare outlying colours
}

/** halves splits a box of at least two colours at the median. */
function halves({ colours, along }) {
  const sorted = colours.toSorted((a, b) => channel(a[0], along) - channel(b[0], along));
  const middle = sorted.length >> 1;
  return [box(sorted.slice(0, middle)), box(sorted.slice(middle))];
}

/** lzw compresses 8-bit pixels, resetting its table when full. */
function lzw(pixels) {
  const [clear, end] = [256, 257];
  const out = [];
  let held = 0, bits = 0, size = 9, table = new Map(), next = 258;
  const put = (code) => {
    held |= code << bits;
    for (bits += size; bits >= 8; bits -= 8) { out.push(held & 255); held >>>= 8; }
  };
  put(clear);
  let prefix = pixels[0];
  for (let p = 1; p < pixels.length; p++) {
    const key = (prefix << 8) | pixels[p];
    const known = table.get(key);
    if (known !== undefined) { prefix = known; continue; }
    put(prefix);
    prefix = pixels[p];
    if (next === LONGEST) {
      put(clear);
      [size, table, next] = [9, new Map(), 258];
      continue;
    }
    if (next === 1 << size) size++;
    table.set(key, next++);
  }
  put(prefix);
  if (next === 1 << size && size < 12) size++;
  put(end);
  if (bits) out.push(held & 255);
  return out;
}
