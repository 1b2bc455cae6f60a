// The sheet of reconstructions: the newest while training, or an earlier one chosen by the slider.
import { count } from '../shared/format.js';

const askEvery = 2000; // ms

/** lastSheet returns the last step ≤ this one that has a sheet: the first step, every sample_every-th, and the last have one. */
export function lastSheet(step, { sample_every: every, steps }) {
  if (step < 1 || step >= steps) return Math.max(0, step);
  return Math.max(1, Math.floor(step / every) * every);
}

export class Sheet {
  #asked = 0;
  #step = 0;
  #held = null; // the step shown before the crosshair moved, 0 for the newest
  #timer = 0;

  constructor(section, api, steps, run) {
    this.section = section;
    this.api = api;
    this.steps = steps;
    this.attempt = run.attempt;
    this.slider = section.querySelector('input[type="range"]');
    this.#step = steps.at(-1) ?? 0;
    this.slider.oninput = () => ((this.#held = null), this.#show(this.steps[Number(this.slider.value)]));
  }

  /** follow updates the list of sheets as the run progresses, and shows the newest unless an earlier one is selected. */
  async follow(run) {
    const now = Date.now();
    const due = lastSheet(run.step, run.config);
    const known = this.steps.at(-1) ?? 0;
    if (run.attempt === this.attempt && due <= known) return;
    if (now - this.#asked < askEvery && run.state === 'running') return;
    this.#asked = now;
    const answer = await fetch(`${this.api}/samples`).catch(() => null);
    if (!answer?.ok) return;
    const { steps } = await answer.json();
    this.attempt = run.attempt;
    this.#take(steps);
  }

  /** cross shows the last sheet up to the crosshair's step; null restores the previous one. */
  cross(step) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#follow(step), 60);
  }

  #follow(step) {
    if (this.steps.length < 2 || (step === null && this.#held === null)) return;
    if (this.#held === null) this.#held = this.#step === this.steps.at(-1) ? 0 : this.#step;
    const wanted = step ?? (this.#held || this.steps.at(-1));
    const at = Math.max(0, this.steps.findLastIndex((s) => s <= wanted));
    if (step === null) this.#held = null;
    if (this.steps[at] === this.#step) return;
    this.slider.value = at;
    this.#show(this.steps[at]);
  }

  #take(steps) {
    const newest = this.#held === null && Number(this.slider.value) >= this.steps.length - 1;
    this.steps = steps;
    this.slider.max = Math.max(0, steps.length - 1);
    this.slider.closest('label').hidden = steps.length < 2;
    if (steps.length === 0) return;
    if (newest || !steps.includes(this.#step)) {
      this.slider.value = steps.length - 1;
      this.#show(steps.at(-1));
    } else {
      this.slider.value = steps.indexOf(this.#step);
    }
  }

  #show(step) {
    this.#step = step;
    this.slider.setAttribute('aria-valuetext', `step ${count(step)}`);
    this.section.querySelector('[data-part="sample-step"]').textContent = `step ${count(step)}`;
    const src = `${this.api}/samples/${step}.png?a=${this.attempt}`;
    for (const img of this.#images()) img.src = src;
  }

  #images() {
    const box = this.section.querySelector('.sheet');
    let images = box.querySelectorAll('img');
    if (images.length === 0) {
      box.replaceChildren(picture('left', 'Four images (top) and their reconstructions (bottom)'), picture('right', 'Four more images (top) and their reconstructions (bottom)'));
      images = box.querySelectorAll('img');
    }
    return images;
  }
}

function picture(side, alt) {
  const img = new Image(512, 256);
  img.className = `pixels ${side}`;
  img.alt = alt;
  return img;
}
