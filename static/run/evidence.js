// Swaps of fixed image pairs and the slot × factor matrix at each checkpoint, chosen by a slider or a chart's crosshair.
import { count } from '../shared/format.js';

const again = 1500; // ms between requests for a matrix that is being computed
const settled = 250; // ms that a checkpoint stays selected before it is requested

/** upTo returns the index of the last step ≤ this one, 0 if all are later. */
export function upTo(steps, step) {
  return Math.max(0, steps.findLastIndex((s) => s <= step));
}

/** rows returns the matrix as table rows: one per factor, with the NMI of every slot. */
export function rows({ factors, ownership }) {
  return factors.map((factor, f) => ({ factor, cells: ownership.nmi[f].map((v) => (Number.isFinite(v) ? v : 0)) }));
}

const element = (tag, text, set = {}) => Object.assign(document.createElement(tag), { textContent: text }, set);

export class Evidence {
  #ticket = 0;
  #timer = 0;
  #at = -1;

  constructor(box, id) {
    this.box = box;
    this.id = id;
    this.pairs = JSON.parse(box.dataset.pairs);
    this.slider = box.querySelector('input');
    this.slider.oninput = () => this.#choose(Number(this.slider.value));
    this.steps = [];
    this.open();
  }

  part(name) {
    return this.box.querySelector(`[data-part="evidence-${name}"]`);
  }

  /** open loads the list of checkpoints and shows the newest. */
  async open() {
    const answer = await fetch(`/api/runs/${this.id}/checkpoints`).catch(() => null);
    if (!answer?.ok) return this.#say('Failed to list the checkpoints. Collapse and expand this section to try again.', true);
    this.steps = (await answer.json()).steps ?? [];
    this.slider.max = Math.max(0, this.steps.length - 1);
    if (this.steps.length) this.#choose(this.steps.length - 1);
    else this.#say('No checkpoint yet.');
  }

  /** cross shows the checkpoint at or before the crosshair's step; null changes nothing. */
  cross(step) {
    if (step !== null && this.steps.length && this.box.open) this.#choose(upTo(this.steps, step));
  }

  #choose(at) {
    if (at === this.#at) return;
    this.#at = at;
    this.slider.value = at;
    const step = this.steps[at];
    this.slider.setAttribute('aria-valuetext', `step ${count(step)}`);
    this.part('step').textContent = `step ${count(step)}`;
    this.#say('Decoding swaps and counting codes…');
    clearTimeout(this.#timer);
    const ticket = ++this.#ticket;
    this.#timer = setTimeout(() => this.#load(step, ticket), settled);
  }

  #load(step, ticket) {
    const api = `/api/play/${this.id}@${step}`;
    const images = this.pairs.map(([a, b]) => {
      const img = element('img', '', { alt: `Image ${count(a)} with each slot of image ${count(b)}, and swapped one by one, at step ${count(step)}` });
      img.onerror = () => ticket === this.#ticket && img.replaceWith(element('p', `Failed to decode the swaps of images ${count(a)} and ${count(b)}.`, { className: 'bad' }));
      img.src = `${api}/sheet.png?a=${a}&b=${b}`;
      return img;
    });
    this.part('swaps').replaceChildren(...images);
    this.#matrix(api, step, ticket);
  }

  async #matrix(api, step, ticket) {
    const answer = await fetch(`${api}/usage`).catch(() => null);
    const body = await answer?.json().catch(() => null);
    if (ticket !== this.#ticket) return;
    if (answer?.status === 202) {
      this.#say(`Measuring the factors of each slot: ${count(body.done)} of ${count(body.of)} images…`);
      this.#timer = setTimeout(() => ticket === this.#ticket && this.#matrix(api, step, ticket), again);
      return;
    }
    this.part('matrix').replaceChildren();
    if (!answer?.ok || !body?.usage) return this.#say(body?.error ?? 'Failed to compute the matrix. Move the slider to try again.', true);
    if (!body.usage.factors?.length) return this.#say('The dataset has no factors, so there is no matrix.');
    this.#say('');
    this.part('matrix').replaceChildren(this.#table(body.usage, step));
  }

  #table(usage, step) {
    const table = element('table', '', { className: 'matrix' });
    table.append(element('caption', `NMI between factors and slots at step ${count(step)}, over ${count(usage.images)} images`));
    const head = table.createTHead().insertRow();
    head.append(element('td', ''), ...usage.labels.map((_, slot) => element('th', `slot ${slot}`, { scope: 'col' })));
    const body = table.createTBody();
    for (const { factor, cells } of rows(usage)) {
      const row = body.insertRow();
      row.append(element('th', factor, { scope: 'row' }));
      for (const v of cells) {
        const cell = element('td', v.toFixed(2), { className: 'n' });
        cell.style.setProperty('--share', Math.min(1, Math.max(0, v)));
        row.append(cell);
      }
    }
    return table;
  }

  #say(text, bad = false) {
    const p = this.part('says');
    p.textContent = text;
    p.classList.toggle('bad', bad);
  }
}
