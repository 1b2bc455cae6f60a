// The chart menu: axes and export. All charts share one menu; a chart's button opens it next to itself.
import { limits } from './address.js';

export class ChartMenu {
  #chart = null;

  /** page: axes(key), setAxes(key, axes), enlarge(chart), large. */
  constructor(box, charts, page) {
    this.box = box;
    this.page = page;
    this.form = box.querySelector('form');
    const f = this.form.elements;
    this.form.onsubmit = (e) => e.preventDefault();
    for (const entry of [f.log, f.all, f.lo, f.hi]) entry.onchange = () => this.#take();
    f.enlarge.onclick = () => (box.hidePopover(), page.enlarge(this.#chart));
    f.svg.onclick = () => this.#chart.file('svg');
    f.png.onclick = () => this.#chart.file('png');
    for (const chart of charts) chart.figure.querySelector('[data-part="menu"]').onclick = (e) => this.#open(chart, e.currentTarget);
  }

  #open(chart, button) {
    this.#chart = chart;
    const f = this.form.elements;
    const axes = this.page.axes(chart.key);
    f.log.checked = axes.log;
    f.all.checked = axes.all;
    [f.lo.value, f.hi.value] = axes.y?.map((v) => v ?? '') ?? ['', ''];
    this.#why('');
    this.box.querySelector('[data-part="title"]').textContent = chart.panel.title;
    this.box.querySelector('[data-part="csv"]').href = `/api/runs/${this.page.id}/points.csv?names=${chart.panel.series.map(encodeURIComponent).join(',')}`;
    f.enlarge.textContent = this.page.large === chart.key ? 'Shrink' : 'Enlarge';
    this.box.showPopover();
    const at = button.getBoundingClientRect();
    this.box.style.left = `${Math.max(8, Math.min(at.right - this.box.offsetWidth, innerWidth - this.box.offsetWidth - 8))}px`;
    this.box.style.top = `${Math.max(8, Math.min(at.bottom + 4, innerHeight - this.box.offsetHeight - 8))}px`;
    f.log.focus();
  }

  #take() {
    const f = this.form.elements;
    const [lo, hi] = [f.lo.value.trim(), f.hi.value.trim()];
    const y = limits(lo, hi);
    const bad = [lo, hi].find((text) => text !== '' && !Number.isFinite(Number(text)));
    if (bad !== undefined) return this.#why(`“${bad}” is not a number.`);
    if (!y && (lo || hi)) return this.#why(`The lower limit (${lo}) must be below the upper one (${hi}).`);
    this.#why('');
    this.page.setAxes(this.#chart.key, { log: f.log.checked, all: f.all.checked, y });
  }

  #why(text) {
    const p = this.box.querySelector('[data-part="why"]');
    p.textContent = text;
    p.hidden = text === '';
  }
}
