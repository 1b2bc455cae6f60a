// Names of codes and groups. A code is named after its slot's factor value, if known, followed by its number.

/** tell and label write only if the text changes, because any write triggers a layout. */
export const tell = (element, text) => { if (element.textContent !== String(text)) element.textContent = text; };
export const label = (element, text) => { if (element.getAttribute('aria-label') !== text) element.setAttribute('aria-label', text); };

const written = new WeakMap(); // element → what it shows

/** Names holds the names of codes. slots is [{codes: [{code, name, hues, classes}]}]; text formats a code's number. */
export class Names {
  constructor(slots, text) {
    this.text = text;
    this.known = slots.map((s) => new Map((s.codes ?? []).map((c) => [c.code, c])));
  }

  /** of returns the meaning of a slot's code, or undefined. */
  of(slot, code) { return this.known[slot]?.get(code); }

  /** say formats a code for use in a sentence: "0.6 (50)", or its number alone. */
  say(slot, code) {
    const known = this.of(slot, code);
    return known ? `${known.name} (${this.text(code)})` : this.text(code);
  }

  /** write shows a code's colours, name and number in an element. */
  write(element, slot, code) {
    const known = this.of(slot, code);
    if (written.get(element) === (known ?? code)) return;
    const began = !written.has(element);
    written.set(element, known ?? code);
    if (began && element.textContent.replace(/\s+/g, '') === `${known?.name ?? ''}${this.text(code)}`.replace(/\s+/g, '')) return; // already rendered by the server
    const part = (name, text) => Object.assign(document.createElement('span'), { className: name, textContent: text });
    if (!known) return element.replaceChildren(part('code', this.text(code)));
    element.replaceChildren(...(known.hues?.length ? [swatch(known.hues)] : []), part('code', known.name), ' ', part('no quiet', this.text(code)));
  }
}

const SVG = 'http://www.w3.org/2000/svg';

/** svg creates an SVG element. */
export function svg(name, attributes) {
  const e = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  return e;
}

/** swatch returns a drawing of colours side by side. */
export function swatch(hues) {
  const all = svg('svg', { class: 'hues', 'aria-hidden': 'true', viewBox: `0 0 ${hues.length} 1`, preserveAspectRatio: 'none' });
  all.append(...hues.map((fill, x) => svg('rect', { x, width: 1, height: 1, fill })));
  return all;
}

/** slotName returns the user-chosen or factor-based name of a slot; empty if neither is known. */
export function slotName({ called, name }) { return called || name; }

/** groupName returns the name of a group, or its slot numbers if it has none. */
export function groupName({ called, name, slots }) { return called || name || numbers(slots); }

/** numbers lists slots: "slot 3", "slots 1 and 2". */
export function numbers(slots) {
  return slots.length === 1 ? `slot ${slots[0]}` : `slots ${slots.slice(0, -1).join(', ')} and ${slots.at(-1)}`;
}
