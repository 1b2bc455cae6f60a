// The interpolation: from A to B, one more slot of B at every step. Dragging a grip, or ‹ and ›, changes the order.

import { interpolation, moved, natural } from './codes.js';
import { label, tell } from './names.js';
import { paint, shows } from './pixels.js';
import { THRESHOLD } from './machine.js';

export class Strip {
  #drag = null;
  #walking = 0;

  constructor(section, shape, app) {
    Object.assign(this, { section, shape, app });
    this.list = section.querySelector('#steps');
    this.items = [...this.list.children];
    this.items.forEach((item, j) => {
      const shot = item.querySelector('.shot');
      shot.addEventListener('click', (e) => { if (!e.ctrlKey && !e.metaKey) { e.preventDefault(); app.takeStep(j); } });
      shot.addEventListener('pointerenter', (e) => e.pointerType === 'mouse' && app.look(this.#steps()[j], this.#name(j)));
      shot.addEventListener('pointerleave', () => app.lookAway());
      for (const move of item.querySelectorAll('.move')) {
        move.addEventListener('click', (e) => { e.preventDefault(); this.#move(j - 1, Number(move.dataset.by), move); });
        move.addEventListener('keydown', (e) => { if (e.key === ' ') { e.preventDefault(); move.click(); } });
      }
      item.querySelector('.grip')?.addEventListener('pointerdown', (e) => this.#grab(e, j - 1));
    });
    section.querySelector('#order-natural').addEventListener('click', () => app.reorder(natural(app.state.order.length)));
    section.querySelector('#order-large').addEventListener('click', () => app.reorder(app.grid.largest));
    const part = (id) => section.querySelector(`#${id}`);
    Object.assign(this, { button: part('walk'), speed: part('walk-speed'), loop: part('walk-loop'), screen: part('screen') });
    this.button.addEventListener('click', () => (this.#walking ? this.stop() : this.#begin()));
  }

  #steps() { return interpolation(this.app.state.codes, this.app.state.bcodes, this.app.state.order); }
  #name(j) { return j === 0 ? 'A' : j === this.items.length - 1 ? 'B, all slots swapped' : `A with ${j} slot${j > 1 ? 's' : ''} of B`; }

  #move(place, by, button) {
    const to = place + by;
    if (to < 0 || to >= this.app.state.order.length) return;
    this.app.reorder(moved(this.app.state.order, place, to));
    this.items[to + 1].querySelector(`.move[data-by="${button.dataset.by}"]`).focus();
  }

  #grab(e, place) {
    if (e.button !== 0 || !e.isPrimary) return;
    e.preventDefault();
    const grip = e.currentTarget;
    grip.setPointerCapture(e.pointerId);
    this.#drag = { place, to: place, x: e.clientX, y: e.clientY, moving: false };
    const move = (e) => this.#dragged(e);
    const end = (e) => {
      grip.removeEventListener('pointermove', move);
      for (const type of ['pointerup', 'pointercancel']) grip.removeEventListener(type, end);
      if (e.type === 'pointerup') this.#dragged(e); // a fast release may come without a preceding move
      this.#dropped(e.type === 'pointerup');
    };
    grip.addEventListener('pointermove', move);
    for (const type of ['pointerup', 'pointercancel']) grip.addEventListener(type, end);
  }

  #dragged(e) {
    const d = this.#drag;
    if (!d.moving && Math.hypot(e.clientX - d.x, e.clientY - d.y) < THRESHOLD) return;
    d.moving = true;
    const boxes = this.items.slice(1).map((item) => item.getBoundingClientRect());
    const distance = (box) => Math.hypot(e.clientX - (box.left + box.right) / 2, e.clientY - (box.top + box.bottom) / 2);
    d.to = boxes.map(distance).reduce((best, dist, j, all) => (dist < all[best] ? j : best), 0);
    this.items.forEach((item, j) => {
      item.toggleAttribute('data-moving', j - 1 === d.place);
      item.toggleAttribute('data-over', j - 1 === d.to && d.to !== d.place);
      item.dataset.from = d.to > d.place ? 'left' : 'right';
    });
  }

  #dropped(done) {
    const { place, to, moving } = this.#drag;
    this.#drag = null;
    for (const item of this.items) { item.removeAttribute('data-moving'); item.removeAttribute('data-over'); }
    if (done && moving && to !== place) this.app.reorder(moved(this.app.state.order, place, to));
  }

  /** begin plays the animation once its images are decoded. */
  async #begin() {
    if (await this.app.pictures('rest', this.#steps())) this.#walk(0);
  }

  /** walk shows the steps from j on, in the strip and enlarged, until the last one or until stopped. */
  #walk(j) {
    clearTimeout(this.#walking);
    const steps = this.#steps();
    if (j >= steps.length && !this.loop.checked) return this.stop();
    const at = j % steps.length;
    this.button.textContent = 'Stop';
    this.button.setAttribute('aria-pressed', 'true');
    this.screen.hidden = false;
    this.items.forEach((item, n) => item.toggleAttribute('data-now', n === at));
    this.app.look(steps[at], this.#name(at));
    const pixels = this.app.decoder.peek(steps[at]);
    if (pixels) paint(this.screen, pixels, this.shape, steps[at].join('.'));
    this.#walking = setTimeout(() => this.#walk(at + 1 < steps.length || this.loop.checked ? at + 1 : steps.length), Number(this.speed.value));
  }

  /** stop ends the animation. */
  stop() {
    if (!this.#walking) return;
    clearTimeout(this.#walking);
    this.#walking = 0;
    this.button.textContent = 'Play animation';
    this.button.setAttribute('aria-pressed', 'false');
    this.screen.hidden = true;
    for (const item of this.items) item.removeAttribute('data-now');
    this.app.lookAway();
  }

  draw(state) {
    this.stop();
    this.items.forEach((item, j) => {
      if (j === 0) return;
      const slot = state.order[j - 1];
      item.dataset.slot = slot % 9;
      item.dataset.i = slot;
      tell(item.querySelector('.grip'), slot);
      item.toggleAttribute('data-same', state.codes[slot] === state.bcodes[slot]);
      for (const move of item.querySelectorAll('.move')) {
        const by = Number(move.dataset.by);
        label(move, `Swap slot ${slot} ${by < 0 ? 'earlier' : 'later'}`);
        move.toggleAttribute('aria-disabled', (by < 0 && j === 1) || (by > 0 && j === this.items.length - 1));
      }
    });
  }

  /** lacks returns the steps of a state whose server-rendered images are not shown. */
  lacks(state) {
    return interpolation(state.codes, state.bcodes, state.order).filter((codes, j) => !shows(this.items[j].querySelector('.pixels'), codes.join('.')));
  }

  /** showing paints the steps for which pictures returns pixels. */
  *showing(state, pictures) {
    for (const [j, codes] of interpolation(state.codes, state.bcodes, state.order).entries()) {
      const pixels = pictures(codes);
      if (pixels) paint(this.items[j].querySelector('.pixels'), pixels, this.shape, codes.join('.'));
      label(this.items[j].querySelector('.pixels'), this.#name(j));
      label(this.items[j].querySelector('.shot'), `${this.#name(j)}; apply to A`);
      yield;
    }
  }
}
