// The range of a chart's y axis.

const least = 40; // values below which none is an outlier
const share = 0.01; // of the values at either end that may be outliers
const room = 0.5; // of the middle's span that is shown around it
const worth = 2; // times as wide all values must lie, that it is worth leaving some out

/** robust is the range that leaves outliers out: [lo, hi] around all but 1% of the values at either end, null where that would show little more. */
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
