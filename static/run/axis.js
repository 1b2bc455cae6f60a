// The range of a chart's y axis.

const least = 40; // minimum number of values to detect outliers
const share = 0.01; // fraction of the values at either end that may be outliers
const room = 0.5; // margin on each side, as a fraction of the inner span
const worth = 2; // outliers are left out only if the full range is this many times wider

/** robust returns a range without outliers, [lo, hi] around all but 1% of the values at either end, or null if that gains little. */
export function robust(values) {
  if (values.length < least) return null;
  const v = values.toSorted((a, b) => a - b);
  const from = v[Math.floor(share * (v.length - 1))];
  const to = v[Math.ceil((1 - share) * (v.length - 1))];
  const pad = room * (to - from);
  const range = [Math.max(v[0], from - pad), Math.min(v[v.length - 1], to + pad)];
  if (range[1] <= range[0] || v[v.length - 1] - v[0] < worth * (range[1] - range[0])) return null;
  return range;
}
