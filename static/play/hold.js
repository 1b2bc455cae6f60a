// Hands: translates pointer and key events into events of the state machine, and its effects into calls on the page.

import { idle, step } from './machine.js';

const SOURCE = ':is([data-kind="cell"], [data-kind="entry"], [data-kind="group"])';
const INTERACTIVE = 'a, button, input, select, label, summary, textarea';

export class Hands {
  #state = idle;
  #pressed = null; // the element under the press
  #ghost = null;

  /** app has row(), groups and heldName(source), and handles the effects: pick, over, place, cancel. */
  constructor(root, app) {
    Object.assign(this, { root, app });
    root.addEventListener('pointerdown', (e) => this.#down(e));
    addEventListener('pointermove', (e) => this.#move(e));
    addEventListener('pointerup', (e) => this.#up(e));
    addEventListener('pointercancel', () => this.send({ type: 'cancel' }));
    addEventListener('blur', () => this.#state.by === 'drag' && this.send({ type: 'cancel' }));
    addEventListener('keydown', (e) => e.key === 'Escape' && this.#state.phase !== 'idle' && this.send({ type: 'escape' }));
    document.addEventListener('click', (e) => this.#click(e));
    root.addEventListener('dragstart', (e) => e.preventDefault());
  }

  get held() { return this.#state.phase === 'held' ? this.#state : null; }

  send(event) {
    const [next, effects] = step(this.#state, { row: this.app.row(), ...event });
    this.#state = next;
    for (const effect of effects) this.app[effect.type](effect);
    if (next.phase !== 'held' || next.by !== 'drag') this.#dropGhost();
  }

  /** what describes an element for the state machine, or null. */
  what(element) {
    const at = element?.closest?.(`${SOURCE}, [data-drop]`);
    if (!at || !this.root.contains(at)) return null;
    if (at.dataset.drop) return { kind: 'image' };
    const code = Number(at.dataset.code);
    if (at.dataset.kind === 'group') return { kind: 'group', group: Number(at.dataset.g), slot: this.app.groups[at.dataset.g].slots[0] };
    if (at.dataset.kind === 'entry') return { kind: 'entry', slot: Number(at.dataset.of), code };
    return { kind: 'cell', row: at.dataset.row, slot: Number(at.dataset.i), code };
  }

  /** press handles Enter, Space and assistive technology on a source. */
  press(element) { this.send({ type: 'key', what: this.what(element) }); }

  /** hover reports the focused element while a code is held by keyboard. */
  hover(element) { if (this.held?.by === 'keys') this.send({ type: 'hover', what: this.what(element) }); }

  #down(e) {
    const source = e.target.closest(SOURCE);
    if (!source || e.button !== 0 || e.ctrlKey || e.metaKey || !e.isPrimary) return;
    this.#pressed = source;
    if (e.pointerType === 'mouse') e.preventDefault(); // no text selection, no native drag
    source.focus({ preventScroll: true });
    if (source.hasPointerCapture?.(e.pointerId)) source.releasePointerCapture(e.pointerId);
    this.send({ type: 'down', what: this.what(source), x: e.clientX, y: e.clientY });
  }

  #move(e) {
    if (this.#state.phase === 'idle' || !e.isPrimary) return;
    const under = document.elementFromPoint(e.clientX, e.clientY);
    const pressed = this.#state.phase === 'pressed';
    if (!pressed && this.#state.by !== 'drag' && e.pointerType !== 'mouse') return;
    if (this.#state.by === 'keys') return;
    this.send({ type: 'move', what: this.what(under), x: e.clientX, y: e.clientY });
    if (pressed && this.held?.by === 'drag') this.#makeGhost(e);
    this.#moveGhost(e);
  }

  #up(e) {
    if (this.#state.phase === 'idle' || !e.isPrimary) return;
    const waiting = this.#state.phase === 'pressed' || this.#state.by === 'drag';
    if (waiting) this.send({ type: 'up', what: this.what(document.elementFromPoint(e.clientX, e.clientY)) });
  }

  /** click handles assistive technology, the enlarged image, and clicks elsewhere; pointer events on sources are already handled. */
  #click(e) {
    const source = e.target.closest?.(SOURCE);
    if (source && this.root.contains(source)) {
      if (e.ctrlKey || e.metaKey) return;
      e.preventDefault();
      if (e.detail === 0) this.press(source);
      return;
    }
    if (!this.held || this.held.by === 'drag') return;
    if (e.target.closest('[data-drop]') && !e.target.closest(INTERACTIVE)) this.send({ type: 'down', what: { kind: 'image' } });
    else if (!e.target.closest(INTERACTIVE)) this.send({ type: 'down', what: null });
  }

  #makeGhost(e) {
    const ghost = document.createElement('div');
    ghost.className = 'ghost';
    ghost.setAttribute('aria-hidden', 'true');
    const picture = this.#pressed.querySelector('.pixels');
    if (picture) {
      const copy = document.createElement('canvas');
      copy.width = picture.naturalWidth ?? picture.width;
      copy.height = picture.naturalHeight ?? picture.height;
      copy.className = 'pixels';
      copy.getContext('2d').drawImage(picture, 0, 0);
      ghost.append(copy);
    }
    const what = document.createElement('span');
    what.className = 'code';
    what.textContent = this.app.heldName(this.held.source);
    ghost.append(what);
    ghost.dataset.slot = this.held.source.slot % 9;
    document.body.append(ghost);
    this.#ghost = ghost;
    if (this.#pressed.isConnected) try { this.#pressed.setPointerCapture(e.pointerId); } catch { /* the pointer is no longer active */ }
  }

  #moveGhost(e) {
    if (this.#ghost) this.#ghost.style.transform = `translate(${e.clientX + 10}px, ${e.clientY + 12}px)`;
  }

  #dropGhost() {
    this.#ghost?.remove();
    this.#ghost = null;
  }
}
