// Code tuples: an image is m whole numbers, one per slot.

export const format = (codes) => codes.join('.');

/** parse reads "17.301.4"; null if it is not a tuple of m codes below k. */
export function parse(text, m, k) {
  const codes = String(text).split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : -1));
  return codes.length === m && codes.every((c) => c >= 0 && c < k) ? codes : null;
}

/** writer returns a formatter for codes: their number, or, if slots hold real numbers, the number that they represent, "+0.25". */
export const writer = ({ real, k }) => (c) => {
  const value = (c - (k - 1) / 2) / 64;
  return real ? `${value > 0 ? '+' : ''}${value.toFixed(2)}` : String(c);
};

export const same = (a, b) => a.length === b.length && a.every((c, i) => c === b[i]);

/** put returns a copy of codes with code c in slot i. */
export const put = (codes, i, c) => codes.with ? codes.with(i, c) : codes.map((old, j) => (j === i ? c : old));

/** putAll returns a copy of codes with another tuple's codes in the given slots. */
export const putAll = (codes, slots, from) => codes.map((c, i) => (slots.includes(i) ? from[i] : c));

/** swaps returns A with each slot of B, one at a time (paper, latent component swapping). */
export const swaps = (a, b) => a.map((_, i) => put(a, i, b[i]));

/** interpolation returns the steps from A to B, replacing one more slot at each step in the given order (paper, latent interpolation). */
export function interpolation(a, b, order) {
  const steps = [a];
  for (const i of order) steps.push(put(steps.at(-1), i, b[i]));
  return steps;
}

/** edits lists the slots in which codes differ from base, the encoded ones. */
export const edits = (codes, base) => codes.map((c, i) => ({ slot: i, from: base[i], to: c })).filter((e) => e.from !== e.to);

/** moved returns order with the item at position from moved to position to. */
export function moved(order, from, to) {
  const out = order.slice();
  const [taken] = out.splice(from, 1);
  out.splice(Math.max(0, Math.min(to, out.length)), 0, taken);
  return out;
}

/** natural returns 0, 1, … m−1. */
export const natural = (m) => Array.from({ length: m }, (_, i) => i);

export const CHANGED_BY = 8; // of 255; a pixel with a larger difference counts as changed

/**
 * difference compares two images of c channels: the maximum channel difference per pixel (map), its maximum (most), and the fraction of
 * pixels above CHANGED_BY (changed).
 */
export function difference(x, y, c) {
  const map = new Uint8Array(x.length / c);
  let most = 0, changed = 0;
  for (let p = 0, at = 0; p < map.length; p++) {
    let d = 0;
    for (let ch = 0; ch < c; ch++, at++) d = Math.max(d, Math.abs(x[at] - y[at]));
    map[p] = d;
    if (d > most) most = d;
    if (d > CHANGED_BY) changed++;
  }
  return { map, most, changed: changed / map.length };
}

/** percent formats a fraction for a narrow column. */
export const percent = (f) => (f === 0 ? '0 %' : f < 0.001 ? '< 0.1 %' : `${(100 * f).toFixed(1)} %`);
