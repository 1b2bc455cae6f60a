// The points of a run in the page: every step once, in order, across reconnections.

/** number parses a sample's value; values that JSON lacks are encoded as "NaN", "+Inf", "-Inf". */
export function number(v) {
  if (typeof v === 'number') return v;
  if (v === '+Inf' || v === 'Inf') return Infinity;
  if (v === '-Inf') return -Infinity;
  return NaN;
}

/** Series is one scalar over steps, ascending. */
export class Series {
  steps = [];
  values = [];

  get last() {
    return this.steps.length ? this.steps[this.steps.length - 1] : 0;
  }

  /** append adds samples [step, value] in order; samples at or before the last step are ignored. */
  append(samples) {
    for (const [step, v] of samples) {
      if (step <= this.last) continue;
      this.steps.push(step);
      this.values.push(number(v));
    }
  }

  /** rewind drops samples after a step. */
  rewind(to) {
    const n = after(this.steps, to);
    this.steps.length = n;
    this.values.length = n;
  }
}

/** after returns the index of the first step after s. */
export function after(steps, s) {
  let lo = 0;
  let hi = steps.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (steps[mid] > s) hi = mid;
    else lo = mid + 1;
  }
  return lo;
}

/** Store holds all series of a run up to head, and the attempt of the run they belong to. */
export class Store {
  series = new Map();
  head = 0;
  attempt = 0;
  thinned = false; // the first part has min, max and last of each column instead of every point
  version = 0; // increases on every change

  get(name) {
    let s = this.series.get(name);
    if (!s) this.series.set(name, (s = new Series()));
    return s;
  }

  /** replace restarts from a page of points from the server. */
  replace(page, thinned) {
    this.series.clear();
    for (const [name, samples] of Object.entries(page.series)) this.get(name).append(samples);
    this.head = page.last;
    this.attempt = page.attempt;
    this.thinned = thinned;
    this.version++;
  }

  /** append adds a frame of points; returns false if earlier points are missing and must be requested. */
  append(frame) {
    if (frame.from > this.head) return false;
    for (const [name, samples] of Object.entries(frame.series)) this.get(name).append(samples);
    this.head = Math.max(this.head, frame.to);
    this.attempt = frame.attempt;
    this.version++;
    return true;
  }

  /** rewind drops the points after a step from which the run was resumed. */
  rewind(to, attempt) {
    for (const s of this.series.values()) s.rewind(to);
    this.head = Math.min(this.head, to);
    this.attempt = attempt;
    this.version++;
  }

  /** longest returns the length of the longest series. */
  get longest() {
    let n = 0;
    for (const s of this.series.values()) n = Math.max(n, s.steps.length);
    return n;
  }
}

/**
 * Smoother is an exponential moving average, corrected for its bias towards 0 at the start:
 *   m_n = α·m_{n−1} + (1−α)·x_n,  y_n = m_n / (1 − αⁿ).
 * It only appends, so past values never change. Non-finite values are skipped.
 */
export class Smoother {
  steps = [];
  values = [];
  #m = 0;
  #weight = 0;

  constructor(alpha) {
    this.alpha = alpha;
  }

  /** seed starts from averages that the server computed over every point. */
  seed(samples) {
    for (const [step, v] of samples) {
      this.steps.push(step);
      this.values.push(number(v));
    }
    const last = this.values[this.values.length - 1];
    if (Number.isFinite(last)) {
      this.#m = last;
      this.#weight = 1;
    }
  }

  /** extend averages the samples appended since the last call. */
  extend(series) {
    const from = this.steps.length ? after(series.steps, this.steps[this.steps.length - 1]) : 0;
    for (let i = from; i < series.steps.length; i++) {
      this.steps.push(series.steps[i]);
      this.values.push(this.#next(series.values[i]));
    }
  }

  #next(x) {
    if (Number.isFinite(x)) {
      this.#m = this.alpha * this.#m + (1 - this.alpha) * x;
      this.#weight = this.alpha * this.#weight + (1 - this.alpha);
    }
    return this.#weight === 0 ? NaN : this.#m / this.#weight;
  }
}

/** slice returns the steps and values within a range of steps, plus one neighbour on each side so that lines reach the edge. */
export function slice(steps, values, range) {
  if (!range) return { steps, values };
  const from = Math.max(0, after(steps, Math.ceil(range[0]) - 1) - 1);
  const to = Math.min(steps.length, after(steps, range[1]) + 1);
  return { steps: steps.slice(from, to), values: values.slice(from, to) };
}

/** within counts the steps in a range. */
export function within(steps, range) {
  return range ? after(steps, range[1]) - after(steps, Math.ceil(range[0]) - 1) : steps.length;
}

/**
 * clock maps steps to seconds of training: each step takes batch / (images per second). Pauses are excluded.
 * Returns a function of the step, interpolated linearly between measurements.
 */
export function clock(speed, batch) {
  const at = [0];
  const steps = [0];
  let seconds = 0;
  let pace = 0;
  for (let i = 0; i < speed.steps.length; i++) {
    if (speed.values[i] > 0 && Number.isFinite(speed.values[i])) pace = batch / speed.values[i];
    seconds += (speed.steps[i] - steps[steps.length - 1]) * pace;
    steps.push(speed.steps[i]);
    at.push(seconds);
  }
  return (step) => {
    const i = Math.min(Math.max(1, after(steps, step)), steps.length - 1);
    if (i < 1) return 0;
    const share = (step - steps[i - 1]) / (steps[i] - steps[i - 1] || 1);
    return at[i - 1] + share * (at[i] - at[i - 1]);
  };
}
