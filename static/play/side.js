// A side: the source of image A or B, chosen by index, by factors, at random, or by upload.

import { format } from './codes.js';
import { tell } from './names.js';
import { paint } from './pixels.js';

export class Side {
  #aborts = null;
  #waiting = null; // the newest factors, queued while a request is running
  #busy = false;

  constructor(section, shape, dataset, app) {
    Object.assign(this, { section, shape, dataset, app, name: section.dataset.side });
    const part = (name) => section.querySelector(`[data-part="${name}"]`);
    this.psnr = part('psnr');
    this.original = part('original');
    this.said = part('said');
    this.index = section.querySelector('input.index');
    this.sliders = [...section.querySelectorAll('[data-factor]')];
    part('by-index')?.addEventListener('submit', (e) => { e.preventDefault(); this.#submit(e.submitter); });
    this.index?.addEventListener('change', () => this.index.value !== '' && this.#take({ index: Number(this.index.value) }));
    for (const slider of this.sliders) {
      slider.addEventListener('input', () => this.#slide(false));
      slider.addEventListener('change', () => this.#slide(true));
    }
    const file = section.querySelector('input[type="file"]');
    file?.addEventListener('change', () => { if (file.files[0]) this.#upload(file.files[0]); file.value = ''; });
    this.#dropFiles();
    this.fold = part('fold');
    document.addEventListener('click', (e) => { if (this.fold && !this.fold.contains(e.target)) this.fold.open = false; });
    this.fold?.addEventListener('keydown', (e) => { if (e.key === 'Escape') { this.fold.open = false; this.fold.querySelector('summary').focus(); } });
  }

  #submit(button) {
    if (button?.value === 'random') this.#take({ random: true });
    else if (this.index.reportValidity() && this.index.value !== '') this.#take({ index: Number(this.index.value) });
  }

  async #take(body) {
    await this.#ask(body, true);
  }

  /** slide encodes the image of the factors while sliders move: one request at a time, then the newest. */
  async #slide(done) {
    this.#outputs();
    this.#waiting = { classes: this.sliders.map((s) => Number(s.value)), done: done || this.#waiting?.done };
    if (this.#busy) return;
    this.#busy = true;
    while (this.#waiting) {
      const { classes, done } = this.#waiting;
      this.#waiting = null;
      await this.#ask({ classes }, done);
    }
    this.#busy = false;
  }

  #upload(file) {
    return this.#ask(file, true);
  }

  async #ask(what, done) {
    this.#aborts?.abort();
    const aborts = (this.#aborts = new AbortController());
    this.section.toggleAttribute('data-busy', true);
    try {
      const reply = await this.app.store.encode(what, aborts.signal, this.index?.value);
      this.say(reply.said ?? '');
      this.app.source(this.name, reply, done);
    } catch (err) {
      if (err.name !== 'AbortError') this.say(err.message, true);
    } finally {
      if (this.#aborts === aborts) this.section.removeAttribute('data-busy');
    }
  }

  /** say shows a message next to the image. */
  say(text, bad = false) {
    this.said.hidden = text === '';
    this.said.classList.toggle('bad', bad);
    this.said.textContent = text;
  }

  #dropFiles() {
    const over = (on) => this.section.toggleAttribute('data-dropping', on);
    this.section.addEventListener('dragover', (e) => {
      if (![...e.dataTransfer.types].includes('Files')) return;
      e.preventDefault();
      over(true);
    });
    this.section.addEventListener('dragleave', (e) => !this.section.contains(e.relatedTarget) && over(false));
    this.section.addEventListener('drop', (e) => {
      if (!e.dataTransfer.files[0]) return;
      e.preventDefault();
      over(false);
      this.#upload(e.dataTransfer.files[0]);
    });
  }

  #outputs() {
    this.sliders.forEach((slider, f) => {
      tell(slider.parentElement.querySelector('[data-part="now"]'), this.dataset.factors[f].values[slider.value]);
      slider.setAttribute('aria-valuetext', this.dataset.factors[f].values[slider.value]);
    });
  }

  draw({ index, classes, psnr, original }) {
    if (this.index) this.index.value = index >= 0 ? index : '';
    tell(this.psnr, psnr ? `PSNR ${psnr.toFixed(1)} dB` : '');
    this.psnr.title = psnr ? 'Peak signal-to-noise ratio of the reconstruction' : '';
    const src = this.app.originalOf(original);
    this.original.hidden = !src;
    if (src && this.original.getAttribute('src') !== src) this.original.src = src;
    if (classes?.length && !this.#waiting && !this.section.contains(document.activeElement?.closest?.('.factors'))) {
      this.sliders.forEach((slider, f) => { slider.value = classes[f]; });
    }
    if (classes?.length) this.#outputs();
    else for (const slider of this.sliders) { // an upload has no factors; moving a slider selects a dataset image
      slider.value = 0;
      slider.parentElement.querySelector('[data-part="now"]').textContent = '–';
      slider.setAttribute('aria-valuetext', 'unknown');
    }
    this.section.toggleAttribute('data-made-up', !(classes?.length));
  }

  show({ codes }, pixels) { paint(this.#reconstruction(), pixels, this.shape, format(codes)); }

  #reconstruction() { return this.section.querySelector('[data-part="reconstruction"]'); }
}
