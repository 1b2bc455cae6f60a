// The pad: a two-dimensional slider that blends two slots or groups at once from A's codes to B's. The corners show its extremes.

import { putAll } from './codes.js';
import { groupName, slotName, tell } from './names.js';

const STEP = 5; // percent per arrow key press; with Shift 1

export class Pad {
  #x = 0; // percent of the way to B
  #y = 0;
  #frame = 0;
  #run = 0;
  #offered = null; // the choices of the axes

  /** move is called with the pad's position: [slots, percent] for each axis. */
  constructor(box, app, move) {
    Object.assign(this, { box, app, move });
    const part = (name) => box.querySelector(`[data-part="${name}"]`);
    this.selects = [part('pad-x'), part('pad-y')];
    this.field = part('pad');
    this.thumb = part('thumb');
    this.shown = part('pad-shown');
    this.corners = [...this.field.querySelectorAll('canvas')];
    for (const select of this.selects) select.addEventListener('change', () => { this.#stand(0, 0); this.#tell(); this.#paintCorners(); });
    this.field.addEventListener('pointerdown', (e) => this.#grab(e));
    this.field.addEventListener('keydown', (e) => this.#key(e));
  }

  /** axes returns the slots that each axis moves: those of a group, or one. */
  #axes() {
    return this.selects.map(({ value }) => (value[0] === 'g' ? this.app.groups[value.slice(1)].slots : [Number(value.slice(1))]));
  }

  #names() {
    return this.selects.map(({ value }) => (value[0] === 'g' ? groupName(this.app.groups[value.slice(1)]) : `slot ${value.slice(1)}`));
  }

  #grab(e) {
    if (e.button !== 0 || !e.isPrimary || this.field.hasAttribute('aria-disabled')) return;
    e.preventDefault();
    this.field.focus();
    this.field.setPointerCapture(e.pointerId);
    const follow = (e) => this.#point(e);
    const end = () => {
      this.field.removeEventListener('pointermove', follow);
      for (const type of ['pointerup', 'pointercancel']) this.field.removeEventListener(type, end);
    };
    this.field.addEventListener('pointermove', follow);
    for (const type of ['pointerup', 'pointercancel']) this.field.addEventListener(type, end);
    this.#point(e);
  }

  #point(e) {
    const { left, top, width, height } = this.field.getBoundingClientRect();
    this.#go(100 * (e.clientX - left) / width, 100 - 100 * (e.clientY - top) / height);
  }

  #key(e) {
    if (this.field.hasAttribute('aria-disabled')) return;
    const by = e.shiftKey ? 1 : STEP;
    const to = {
      ArrowRight: [this.#x + by, this.#y], ArrowLeft: [this.#x - by, this.#y], ArrowUp: [this.#x, this.#y + by], ArrowDown: [this.#x, this.#y - by],
      Home: [0, 0], End: [100, 100],
    }[e.key];
    if (!to || e.altKey || e.ctrlKey || e.metaKey) return;
    e.preventDefault();
    this.#go(...to);
  }

  /** go moves the thumb, and the codes at the next frame. */
  #go(x, y) {
    this.#stand(x, y);
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      const [across, up] = this.#axes();
      this.move([[across, this.#x], [up, this.#y]]);
      this.#tell(); // after move, which resets the pad's text
    });
  }

  #stand(x, y) {
    [this.#x, this.#y] = [x, y].map((v) => Math.round(Math.min(100, Math.max(0, v))));
    this.thumb.style.insetInlineStart = `${this.#x}%`;
    this.thumb.style.insetBlockStart = `${100 - this.#y}%`;
  }

  #tell() {
    const [across, up] = this.#names();
    const text = across === up ? `${this.#x}% of ${across}` : `${this.#x}% of ${across}, ${this.#y}% of ${up}`;
    this.field.setAttribute('aria-valuenow', this.#x);
    this.field.setAttribute('aria-valuetext', text);
    tell(this.box.querySelector('[data-part="pad-now"]'), text);
  }

  /** draw lists the groups and slots that differ between A and B, and paints the corners. */
  draw() {
    const { codes, bcodes } = this.app.state;
    const apart = (slots) => slots.some((i) => codes[i] !== bcodes[i]);
    const groups = this.app.groups.flatMap((g, at) => (apart(g.slots) ? [[`g${at}`, groupName(g)]] : []));
    const slots = this.app.slots.flatMap((s, i) => (apart([i]) ? [[`s${i}`, `Slot ${i}${slotName(s) ? `, ${slotName(s)}` : ''}`]] : []));
    const choices = [...groups, ...slots];
    const offered = choices.join(); // rebuilding lists of options is slow
    this.selects.forEach((select, at) => {
      if (this.#offered === offered) return;
      const before = select.value;
      select.replaceChildren(...choices.map(([value, text]) => new Option(text, value)));
      const other = this.selects[1 - at].value; // different axes by default
      select.value = (choices.find(([value]) => value === before) ?? choices.find(([value]) => value !== other) ?? choices[0] ?? [''])[0];
    });
    this.#offered = offered;
    this.field.toggleAttribute('aria-disabled', choices.length === 0);
    this.reset();
    if (choices.length) this.#paintCorners();
  }

  /** reset moves the thumb back to A, because something else moves the codes. */
  reset() {
    this.#stand(0, 0);
    if (this.selects[0].value) this.#tell();
  }

  /** show paints the image at the pad's position. */
  show(pixels) { this.app.paint(this.shown, pixels); }

  async #paintCorners() {
    const run = ++this.#run;
    const local = this.app.decoder.local;
    if (!local) return;
    const { codes, bcodes } = this.app.state;
    const [across, up] = this.#axes();
    const right = putAll(codes, across, bcodes);
    const tuples = [putAll(codes, up, bcodes), putAll(right, up, bcodes), codes, right]; // in the order of the corners
    await this.app.tabled;
    if (run !== this.#run) return;
    const pictures = await local.decode('pad', tuples.map((a) => ({ a }))).catch(() => null);
    if (!pictures || run !== this.#run) return;
    this.corners.forEach((canvas, at) => this.app.paint(canvas, pictures[at]));
    if (!this.#x && !this.#y) this.show(pictures[2]);
  }
}
