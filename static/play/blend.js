// Blending between codes: slot values interpolated from A to B, and A's latent with noise, which flips codes. Needs a model that runs in this
// browser.

import { format } from './codes.js';
import { noisy } from './codec.js';
import { groupName, slotName, tell } from './names.js';
import { Pad } from './pad.js';

const OFF = 21; // dB; the noise slider's position for no noise

export class Blend {
  #z = null; // A's latent, once computed
  #codes = null; // its codes without noise

  constructor(section, app) {
    Object.assign(this, { section, app });
    const part = (name) => section.querySelector(`[data-part="${name}"]`);
    this.fields = section.querySelector('fieldset');
    this.sliders = [...section.querySelectorAll('[data-blend]')];
    this.every = part('all');
    this.whole = [...document.querySelectorAll('[data-blend-group]')];
    this.noise = part('noise');
    this.flips = part('flips');
    for (const slider of this.sliders) slider.addEventListener('input', () => this.#blend(true));
    for (const slider of this.whole) {
      slider.addEventListener('input', () => {
        for (const i of app.groups[slider.dataset.blendGroup].slots) if (!this.sliders[i].disabled) this.sliders[i].value = slider.value;
        this.#blend(true);
      });
    }
    this.every.addEventListener('input', () => {
      for (const slider of this.sliders) if (!slider.disabled) slider.value = this.every.value;
      this.#blend(true);
    });
    this.pad = new Pad(section.querySelector('#pad'), app, (moves) => this.#moveAll(moves));
    this.noise.addEventListener('input', () => this.#shake());
    part('again').addEventListener('click', () => this.#shake());
    app.decoder.addEventListener('state', () => {
      if (!section.isConnected || this.fields.disabled === !app.decoder.local) return; // replaced by another section, or no change
      this.fields.disabled = !app.decoder.local;
      this.#outputs();
      this.pad.draw();
    });
  }

  /** moveAll moves slots towards B, [[slots, percent]], and resets all others to A. */
  #moveAll(moves) {
    for (const slider of [...this.sliders, this.every]) slider.value = 0;
    for (const [slots, percent] of moves) for (const i of slots) if (!this.sliders[i].disabled) this.sliders[i].value = percent;
    this.#blend(false);
  }

  #blend(bySlider) {
    if (bySlider) this.pad.reset();
    const { codes, bcodes } = this.app.state;
    const t = this.sliders.map((slider) => Number(slider.value) / 100);
    this.#outputs();
    this.noise.value = OFF;
    this.#tellNoise('');
    const parts = this.#parts(t);
    if (!parts.length) {
      const here = this.app.decoder.peek(codes);
      if (here) this.pad.show(here);
      return this.app.lookAway();
    }
    const moving = t.filter((_, i) => !this.sliders[i].disabled);
    const text = moving.length > 1 && moving.every((part) => part === moving[0]) ? `${parts[0].split(' ')[0]} of the way to B` : `with ${parts.join(', ')} from B`;
    this.app.lookAt({ codes, row: 'a', text, name: `blend ${format(codes)} ${format(bcodes)} ${t}`, draw: async () => {
      const pixels = await this.app.decoder.blend('held', codes, bcodes, t);
      this.pad.show(pixels);
      return pixels;
    } });
  }

  /** parts describes how far groups and slots have moved. */
  #parts(t) {
    return this.app.groups.flatMap((group) => {
      const { factor, slots } = group;
      const moving = slots.filter((i) => !this.sliders[i].disabled);
      if (factor >= 0 && moving.length && moving.every((i) => t[i] && t[i] === t[moving[0]])) return [`${Math.round(100 * t[moving[0]])}% of ${groupName(group)}`];
      return slots.flatMap((i) => (t[i] ? [`${Math.round(100 * t[i])}% of slot ${i}`] : []));
    });
  }

  /** shake adds noise to z, decodes the resulting codes and shows the image. */
  async #shake() {
    const snr = Number(this.noise.value);
    this.#reset();
    this.pad.reset();
    if (snr === OFF) { this.#tellNoise(''); return this.app.lookAway(); }
    const local = this.app.decoder.local;
    const started = this.app.state;
    try {
      if (!this.#z) {
        const { z } = await local.encode(await this.app.pixelsOfA());
        this.#codes = await local.represent(z);
        this.#z = z;
      }
      const codes = await local.represent(noisy(this.#z, snr));
      if (started !== this.app.state) return;
      const flipped = codes.flatMap((c, i) => (c === this.#codes[i] ? [] : [i]));
      this.#tellNoise(flipped.length ? `${flipped.length} of ${codes.length} codes flip: slot${flipped.length > 1 ? 's' : ''} ${flipped.map((i) => `${i}${this.app.named(i).replace(', ', ' ')} (${this.app.names.say(i, this.#codes[i])} → ${this.app.names.say(i, codes[i])})`).join(', ')}.` : `All ${codes.length} codes are unchanged.`);
      this.app.flip(new Set(flipped));
      this.app.lookAt({ codes, row: 'a', text: `from z with noise, SNR ${snr} dB` });
    } catch (err) {
      this.#tellNoise(err.message);
    }
  }

  #tellNoise(text) {
    tell(this.flips, text);
    const snr = Number(this.noise.value);
    tell(this.noise.parentElement.querySelector('[data-part="now"]'), snr === OFF ? 'off' : `${snr} dB`);
    if (!text) this.app.flip(new Set());
  }

  #outputs() {
    for (const slider of [...this.sliders, this.every]) tell(slider.parentElement.querySelector('[data-part="now"]'), `${slider.value}%`);
    for (const slider of this.whole) {
      const moving = this.app.groups[slider.dataset.blendGroup].slots.filter((i) => !this.sliders[i].disabled);
      slider.value = moving.length ? Math.max(...moving.map((i) => this.sliders[i].value)) : 0;
      slider.disabled = this.fields.disabled || moving.length === 0;
    }
  }

  #reset() {
    for (const slider of [...this.sliders, this.every]) slider.value = 0;
    this.#outputs();
  }

  /** draw resets the sliders for a new state, in which A may have another latent. */
  draw(state) {
    this.fields.disabled = !this.app.decoder.local;
    this.sliders.forEach((slider, i) => {
      slider.disabled = state.codes[i] === state.bcodes[i];
      tell(slider.closest('label').querySelector('[data-part="factor"]'), slotName(this.app.slots[i]));
    });
    this.#reset();
    this.pad.draw();
    this.noise.value = OFF;
    this.#tellNoise('');
    this.#z = null;
  }
}
