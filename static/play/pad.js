// The pad: two slots or groups at once, each part of the way from A's code to B's. It is one slider of two dimensions; the corners show
// what lies at its ends.

import { putAll } from './codes.js';
import { groupName, slotName, tell } from './names.js';

const STEP = 5; // percent of an arrow key; with Shift 1

export class Pad {
  #x = 0; // percent of the way to B
  #y = 0;
  #frame = 0;
  #run = 0;
  #offered = null; // what the axes offer

  /** move hears where the pad stands: pairs of the slots of an axis and their percent. */
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

  /** axes are the slots that each axis moves: those of a group, or one. */
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

  /** go stands somewhere else, and moves the codes at the next frame. */
  #go(x, y) {
    this.#stand(x, y);
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      const [across, up] = this.#axes();
      this.move([[across, this.#x], [up, this.#y]]);
      this.#tell(); // after what the move itself put back
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

  /** draw offers what differs between A and B, and paints the corners. */
  draw() {
    const { codes, bcodes } = this.app.state;
    const apart = (slots) => slots.some((i) => codes[i] !== bcodes[i]);
    const groups = this.app.groups.flatMap((g, at) => (apart(g.slots) ? [[`g${at}`, groupName(g)]] : []));
    const slots = this.app.slots.flatMap((s, i) => (apart([i]) ? [[`s${i}`, `Slot ${i}${slotName(s) ? `, ${slotName(s)}` : ''}`]] : []));
    const choices = [...groups, ...slots];
    const offered = choices.join(); // laying lists of options out takes long
    this.selects.forEach((select, at) => {
      if (this.#offered === offered) return;
      const before = select.value;
      select.replaceChildren(...choices.map(([value, text]) => new Option(text, value)));
      const other = this.selects[1 - at].value; // the axes differ, where somebody has not chosen otherwise
      select.value = (choices.find(([value]) => value === before) ?? choices.find(([value]) => value !== other) ?? choices[0] ?? [''])[0];
    });
    this.#offered = offered;
    this.field.toggleAttribute('aria-disabled', choices.length === 0);
    this.reset();
    if (choices.length) this.#paintCorners();
  }

  /** reset stands at A again, for codes are moved by something else. */
  reset() {
    this.#stand(0, 0);
    if (this.selects[0].value) this.#tell();
  }

  /** show paints the picture of where the pad stands. */
  show(pixels) { this.app.paint(this.shown, pixels); }

  async #paintCorners() {
    const run = ++this.#run;
    const local = this.app.decoder.local;
    if (!local) return;
    const { codes, bcodes } = this.app.state;
    const [across, up] = this.#axes();
    const right = putAll(codes, across, bcodes);
    const tuples = [putAll(codes, up, bcodes), putAll(right, up, bcodes), codes, right]; // as the corners lie
    await this.app.tabled;
    if (run !== this.#run) return;
    const pictures = await local.decode('pad', tuples.map((a) => ({ a }))).catch(() => null);
    if (!pictures || run !== this.#run) return;
    this.corners.forEach((canvas, at) => this.app.paint(canvas, pictures[at]));
    if (!this.#x && !this.#y) this.show(pictures[2]);
  }
}
