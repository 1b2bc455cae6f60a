// Zoom and pan of a plot by touch, wheel and keyboard. Dragging with the mouse is left to the plot, which selects a span.

const slop = 8; // px that a resting finger may move
const hold = 400; // ms after which a resting finger moves the crosshair
const twice = 350; // maximum ms between the taps of a double tap
const near = 32; // maximum px between them
const turn = 0.004; // change of the span's logarithm per pixel of the wheel
const settles = 180; // ms without a wheel event after which the view is final
const apart = 40; // minimum distance of two fingers in px: closer ones would fling the plot

/** taken returns the span after moving the point at from to to and scaling the width by factor; from and to are shares of the width. */
export function taken([lo, hi], from, to, factor) {
  const held = lo + (hi - lo) * from;
  const wide = (hi - lo) * factor;
  return [held - wide * to, held + wide * (1 - to)];
}

/** inside shifts a span into the whole without shortening it and widens it to at least least; null if it covers the whole. */
export function inside([lo, hi], [first, last], least) {
  const wide = Math.max(hi - lo, least);
  if (wide >= last - first) return null;
  const from = Math.min(Math.max((lo + hi - wide) / 2, first), last - wide);
  return [from, from + wide];
}

const middle = (places) => places.reduce((sum, [x]) => sum + x, 0) / places.length;
const spread = ([a, b]) => (b ? Math.max(apart, Math.hypot(b[0] - a[0], b[1] - a[1])) : 1);

/**
 * Zoom handles touches, wheel and keys on the area of a plot.
 *
 *   two fingers   zoom about their middle, and pan
 *   one finger    sideways: pans if the plot is zoomed, otherwise moves the crosshair; up and down: scrolls the page
 *   held          moves the crosshair in any direction
 *   tap           moves the crosshair; a double tap shows everything
 *   wheel         with Ctrl (like a touchpad pinch) zooms about the pointer, with Shift pans
 *   keys          arrows move the crosshair, and at an edge the view; + and − zoom about the crosshair; 0 shows everything
 *
 * plot has u() (the uPlot in the area, or null), zoomed(), whole() (the span of everything), least() (the narrowest span) and
 * show(span or null for everything, moving), where moving means that more calls follow immediately.
 */
export class Zoom {
  #fingers = new Map(); // positions [x, y] by pointer ID
  #base = null; // visible span and finger positions at the last change of the number of fingers
  #does = null; // "move" the view, "read" with the crosshair, or null while a finger rests
  #tapped = null;
  #timer = 0;
  #turned = 0;
  #frame = null;
  #finger = false; // whether the last pointer was a finger, not the mouse

  constructor(area, plot) {
    this.area = area;
    this.plot = plot;
    area.tabIndex = 0;
    const on = (kind, f, options) => area.addEventListener(kind, f, options);
    on('keydown', (e) => this.#key(e));
    on('wheel', (e) => this.#wheel(e), { passive: false });
    on('pointerdown', (e) => this.#down(e));
    on('pointermove', (e) => this.#move(e));
    on('mouseleave', (e) => this.#finger && e.stopPropagation(), true); // ignore mouseleave after touches, which would hide the crosshair
    on('pointerup', (e) => this.#up(e));
    on('pointercancel', (e) => this.#up(e));
    on('contextmenu', (e) => this.#fingers.size > 0 && e.preventDefault()); // holding moves the crosshair
    on('touchmove', (e) => (this.#does || e.touches.length > 1) && e.cancelable && e.preventDefault(), { passive: false }); // otherwise the page scrolls, too
  }

  /** wheel zooms or pans; without a modifier it scrolls the page. */
  #wheel(e) {
    const u = this.plot.u();
    if (!u || !(e.ctrlKey || e.metaKey || e.shiftKey)) return;
    e.preventDefault();
    const by = (e.deltaY || e.deltaX) * (e.deltaMode === 1 ? 16 : 1);
    const at = this.#share(this.#place(e)[0]);
    if (e.shiftKey) this.#show(taken(this.#span(), at, at - by / u.over.clientWidth, 1), true);
    else this.#show(taken(this.#span(), at, at, Math.exp(Math.min(200, Math.max(-200, by)) * turn)), true);
    clearTimeout(this.#turned);
    this.#turned = setTimeout(() => this.plot.zoomed() && this.#show(this.#span(), false), settles);
  }

  #down(e) {
    this.#finger = e.pointerType !== 'mouse';
    if (e.pointerType === 'mouse' || !this.plot.u()) return;
    if (e.isPrimary) this.#fingers.clear(); // drop fingers whose end was missed
    this.#fingers.set(e.pointerId, this.#place(e));
    this.#does = this.#fingers.size > 1 ? 'move' : null;
    this.#start(e);
    clearTimeout(this.#timer);
    if (!this.#does) this.#timer = setTimeout(() => this.#does || this.#read(...this.#places()[0]), hold);
  }

  #move(e) {
    this.#finger &&= e.pointerType !== 'mouse';
    if (!this.#fingers.has(e.pointerId)) return;
    this.#fingers.set(e.pointerId, this.#place(e));
    this.#does ??= this.#meant(e);
    if (!this.#does) return;
    clearTimeout(this.#timer);
    this.#frame ??= requestAnimationFrame(() => this.#follow(true));
  }

  #up(e) {
    if (!this.#fingers.has(e.pointerId)) return;
    clearTimeout(this.#timer);
    if (this.#does) this.#follow(this.#fingers.size > 1);
    else if (e.type === 'pointerup') this.#tap(e);
    this.#fingers.delete(e.pointerId);
    if (this.#fingers.size > 0) this.#start(e);
    else this.#does = null;
  }

  /** meant returns the action of a finger that starts to move; null while it may still scroll the page. */
  #meant(e) {
    if (e.timeStamp - this.#base.at >= hold) return 'read';
    const [[x0, y0]] = this.#base.places;
    const [[x, y]] = this.#places();
    const sideways = Math.abs(x - x0);
    if (sideways < slop || sideways < Math.abs(y - y0)) return null;
    return this.plot.zoomed() ? 'move' : 'read';
  }

  #start(e) {
    this.#base = { span: this.#span(), places: this.#places(), at: e.timeStamp };
  }

  /** follow updates the view or crosshair to the fingers; moving is false when the last one leaves. */
  #follow(moving) {
    cancelAnimationFrame(this.#frame);
    this.#frame = null;
    const places = this.#places();
    if (!this.plot.u() || places.length === 0) return;
    if (this.#does === 'read') {
      this.#read(...places[0]);
      return;
    }
    const { span, places: from } = this.#base;
    this.#show(taken(span, this.#share(middle(from)), this.#share(middle(places)), spread(from) / spread(places)), moving);
  }

  #tap(e) {
    const [place] = this.#places();
    const last = this.#tapped;
    this.#tapped = { place, at: e.timeStamp };
    if (last && e.timeStamp - last.at < twice && Math.hypot(place[0] - last.place[0], place[1] - last.place[1]) < near) {
      this.#tapped = null;
      this.plot.show(null, false);
    } else this.#read(...place);
  }

  #key(e) {
    const u = this.plot.u();
    if (!u || e.ctrlKey || e.metaKey || e.altKey) return;
    const wide = u.over.clientWidth;
    const left = u.cursor.left >= 0 ? u.cursor.left : wide / 2;
    const sideways = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    const factor = { '+': 0.5, '=': 0.5, '-': 2 }[e.key];
    if (sideways) this.#walk(left, left + sideways * (e.shiftKey ? 20 : 4), wide);
    else if (factor) this.#show(taken(this.#span(), left / wide, left / wide, factor), false);
    else if (e.key === '0') this.plot.show(null, false);
    else return;
    e.preventDefault();
  }

  /** walk moves the crosshair, and the view if the crosshair would leave it. */
  #walk(left, to, wide) {
    const at = Math.min(wide, Math.max(0, to));
    if (at !== to && this.plot.zoomed()) this.#show(taken(this.#span(), to / wide, at / wide, 1), false);
    this.#read(at, this.plot.u().over.clientHeight / 2);
  }

  #show(span, moving) {
    this.plot.show(inside(span, this.plot.whole(), this.plot.least()), moving);
  }

  #read(x, y) {
    const u = this.plot.u();
    u?.setCursor({ left: Math.min(u.over.clientWidth, Math.max(0, x)), top: Math.min(u.over.clientHeight, Math.max(0, y)) }, true, true);
  }

  #span() {
    const { min, max } = this.plot.u().scales.x;
    return [min, max];
  }

  #share = (x) => x / this.plot.u().over.clientWidth;

  #places = () => [...this.#fingers.values()].slice(0, 2);

  #place(e) {
    const box = this.plot.u()?.over.getBoundingClientRect();
    return box ? [e.clientX - box.left, e.clientY - box.top] : [0, 0];
  }
}

/** rest hides the crosshair of a plot without affecting synchronised plots. */
export function rest(u) {
  if (u?.cursor.left >= 0) u.setCursor({ left: -10, top: -10 }, true, false);
}
