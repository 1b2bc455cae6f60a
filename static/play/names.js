// What codes and groups are called: a code goes by the value of the factor that its slot stands for, where that is known, and its
// number comes second.

/** tell and label write only what is new: anything written makes the browser lay the page out again. */
export const tell = (element, text) => { if (element.textContent !== String(text)) element.textContent = text; };
export const label = (element, text) => { if (element.getAttribute('aria-label') !== text) element.setAttribute('aria-label', text); };

const written = new WeakMap(); // element → what it shows

/** Names knows the names of codes, slots [{codes: [{code, name, hues, classes}]}]; text writes a number. */
export class Names {
  constructor(slots, text) {
    this.text = text;
    this.known = slots.map((s) => new Map((s.codes ?? []).map((c) => [c.code, c])));
  }

  /** of is what a code of a slot stands for, or undefined. */
  of(slot, code) { return this.known[slot]?.get(code); }

  /** say writes a code in a sentence: "0.6 (50)", or its number alone. */
  say(slot, code) {
    const known = this.of(slot, code);
    return known ? `${known.name} (${this.text(code)})` : this.text(code);
  }

  /** write puts a code's colours, name and number into an element. */
  write(element, slot, code) {
    const known = this.of(slot, code);
    if (written.get(element) === (known ?? code)) return;
    const began = !written.has(element);
    written.set(element, known ?? code);
    if (began && element.textContent.replace(/\s+/g, '') === `${known?.name ?? ''}${this.text(code)}`.replace(/\s+/g, '')) return; // as the server wrote it
    const part = (name, text) => Object.assign(document.createElement('span'), { className: name, textContent: text });
    if (!known) return element.replaceChildren(part('code', this.text(code)));
    element.replaceChildren(...(known.hues?.length ? [swatch(known.hues)] : []), part('code', known.name), ' ', part('no quiet', this.text(code)));
  }
}

const SVG = 'http://www.w3.org/2000/svg';

/** svg makes an element of a drawing. */
export function svg(name, attributes) {
  const e = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  return e;
}

/** swatch shows colours beside each other. */
export function swatch(hues) {
  const all = svg('svg', { class: 'hues', 'aria-hidden': 'true', viewBox: `0 0 ${hues.length} 1`, preserveAspectRatio: 'none' });
  all.append(...hues.map((fill, x) => svg('rect', { x, width: 1, height: 1, fill })));
  return all;
}

/** slotName is what a slot is called, by a person or after its factors; empty where neither is known. */
export function slotName({ called, name }) { return called || name; }

/** groupName is what a group is called; slots without a factor go by their numbers. */
export function groupName({ called, name, slots }) { return called || name || numbers(slots); }

/** numbers names slots: "slot 3", "slots 1 and 2". */
export function numbers(slots) {
  return slots.length === 1 ? `slot ${slots[0]}` : `slots ${slots.slice(0, -1).join(', ')} and ${slots.at(-1)}`;
}
