// Code tuples: a picture is m whole numbers, one per slot.

export const format = (codes) => codes.join('.');

/** parse reads "17.301.4"; null where it is not a tuple of m codes below k. */
export function parse(text, m, k) {
  const codes = String(text).split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : -1));
  return codes.length === m && codes.every((c) => c >= 0 && c < k) ? codes : null;
}

/** writer tells how codes are written: as numbers, or where slots hold real numbers as those that they stand for, "+0.25". */
export const writer = ({ real, k }) => (c) => {
  const value = (c - (k - 1) / 2) / 64;
  return real ? `${value > 0 ? '+' : ''}${value.toFixed(2)}` : String(c);
};

export const same = (a, b) => a.length === b.length && a.every((c, i) => c === b[i]);

/** put returns a copy of codes whose slot i takes code c. */
export const put = (codes, i, c) => codes.with ? codes.with(i, c) : codes.map((old, j) => (j === i ? c : old));

/** putAll returns a copy of codes whose slots take those of another tuple. */
export const putAll = (codes, slots, from) => codes.map((c, i) => (slots.includes(i) ? from[i] : c));

/** swaps: A with each slot of B, one at a time (paper, latent component swapping). */
export const swaps = (a, b) => a.map((_, i) => put(a, i, b[i]));

/** interpolation: from A to B, slots of B put in one after another in an order (paper, latent interpolation). */
export function interpolation(a, b, order) {
  const steps = [a];
  for (const i of order) steps.push(put(steps.at(-1), i, b[i]));
  return steps;
}

/** edits lists the slots in which codes differ from what was encoded. */
export const edits = (codes, base) => codes.map((c, i) => ({ slot: i, from: base[i], to: c })).filter((e) => e.from !== e.to);

/** moved returns order with the entry at place from taken to place to. */
export function moved(order, from, to) {
  const out = order.slice();
  const [taken] = out.splice(from, 1);
  out.splice(Math.max(0, Math.min(to, out.length)), 0, taken);
  return out;
}

/** natural is 0, 1, … m−1. */
export const natural = (m) => Array.from({ length: m }, (_, i) => i);

export const CHANGED_BY = 8; // of 255: from here on a pixel counts as changed

/**
 * difference compares two pictures of c channels: the largest difference of a channel per pixel, its maximum, and the
 * fraction of pixels above CHANGED_BY.
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

/** percent writes a fraction for a narrow place. */
export const percent = (f) => (f === 0 ? '0 %' : f < 0.001 ? '< 0.1 %' : `${(100 * f).toFixed(1)} %`);
