// Maps numbers to slider positions and back. A scale has min, max, log (logarithmic) and whole (integers only).
export const STEPS = 1000; // positions of a slider

/** place returns the slider position of a value, 0 to STEPS. */
export function place(value, { min, max, log }) {
  const at = log ? Math.log(value / min) / Math.log(max / min) : (value - min) / (max - min);
  return Math.round(STEPS * Math.min(1, Math.max(0, at)));
}

/** valueAt is the inverse of place, rounded to an integer or to three significant digits. */
export function valueAt(step, { min, max, log, whole }) {
  const t = step / STEPS;
  const v = log ? min * (max / min) ** t : min + t * (max - min);
  return whole ? Math.round(v) : Number(v.toPrecision(3));
}
