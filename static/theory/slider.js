// Where a number stands on a slider, and back. A scale has min, max, log for steps by factors, and whole for whole numbers.
export const STEPS = 1000; // of a slider

/** place is where a value stands on a slider of STEPS steps. */
export function place(value, { min, max, log }) {
  const at = log ? Math.log(value / min) / Math.log(max / min) : (value - min) / (max - min);
  return Math.round(STEPS * Math.min(1, Math.max(0, at)));
}

/** valueAt is the inverse of place, whole or with three digits that count. */
export function valueAt(step, { min, max, log, whole }) {
  const t = step / STEPS;
  const v = log ? min * (max / min) ** t : min + t * (max - min);
  return whole ? Math.round(v) : Number(v.toPrecision(3));
}
