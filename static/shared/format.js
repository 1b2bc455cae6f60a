// Human-readable numbers. views/format.go formats them the same way in Go.

/** count formats a whole number with thousands separators: 125,000. */
export function count(n) {
  return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ',').replace(/^-/, '−');
}

/** plural returns a count with its noun. */
export function plural(n, one, many) {
  return n === 1 ? `1 ${one}` : `${count(n)} ${many}`;
}

/** duration formats seconds in at most two units. */
export function duration(seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return '–';
  const s = Math.round(seconds);
  if (s < 60) return `${s} s`;
  if (s < 600) return two(Math.floor(s / 60), 'min', s % 60, 's');
  if (s < 3600) return `${Math.floor((s + 30) / 60)} min`;
  if (s < 48 * 3600) return two(Math.floor(s / 3600), 'h', Math.floor((s % 3600) / 60), 'min');
  return two(Math.floor(s / 86400), 'd', Math.floor((s % 86400) / 3600), 'h');
}

function two(a, unitA, b, unitB) {
  return b === 0 ? `${a} ${unitA}` : `${a} ${unitA} ${b} ${unitB}`;
}

/** rate formats images per second with about three significant digits. */
export function rate(v) {
  if (!(v > 0) || !Number.isFinite(v)) return '–';
  if (v < 10) return v.toFixed(2);
  if (v < 100) return v.toFixed(1);
  return count(v);
}

/** value formats a measured number with four significant digits. */
export function value(v) {
  if (v === null || v === undefined) return '–';
  if (Number.isNaN(v)) return 'NaN';
  if (!Number.isFinite(v)) return v > 0 ? '+∞' : '−∞';
  const a = Math.abs(v);
  if (a !== 0 && (a < 1e-3 || a >= 1e6)) return v.toExponential(2).replaceAll('-', '−').replace('e+', 'e');
  if (a >= 1000) return count(v);
  return Number(v.toPrecision(4)).toString().replace('-', '−');
}
