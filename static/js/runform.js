// The form of a new run: another dataset, model or preset moves the entries nobody has touched to its defaults.
import { duration } from './format.js';

const form = document.querySelector('form.run-form');
const input = (field) => field.querySelector('input, select');
const read = (el) => (el.type === 'checkbox' ? String(el.checked) : el.value);
const write = (el, v) => (el.type === 'checkbox' ? (el.checked = v === 'true') : (el.value = v));

let ticket = 0;
async function newDefaults() {
  const mine = ++ticket;
  const q = new URLSearchParams({ apply: 'defaults' });
  for (const name of ['dataset', 'model', 'preset']) q.set(name, form.elements[name].value);
  const answer = await fetch(`/runs/new?${q}`).catch(() => null);
  if (!answer?.ok || mine !== ticket) return;
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  for (const field of form.querySelectorAll('[data-field]')) {
    const fresh = page.querySelector(`[data-field="${field.dataset.field}"]`);
    if (fresh) take(field, fresh);
  }
  form.querySelector('.estimate').replaceWith(page.querySelector('.estimate'));
  update();
}

/** take moves an entry to its new default, unless somebody typed something else there. */
function take(field, fresh) {
  const el = input(field);
  if (el.dataset.decides === undefined && read(el) === field.dataset.default) write(el, fresh.dataset.default);
  field.dataset.default = fresh.dataset.default;
  for (const part of ['default', 'source']) {
    const [to, from] = [field, fresh].map((f) => f.querySelector(`[data-part="${part}"]`));
    if (to && from) to.textContent = from.textContent;
  }
}

/** update counts what differs from the defaults, and how long the run would take. */
function update() {
  for (const group of form.querySelectorAll('details.group')) {
    const n = [...group.querySelectorAll('[data-field]')].filter((f) => read(input(f)) !== f.dataset.default).length;
    const note = group.querySelector('[data-part="changed"]');
    note.textContent = `${n} changed`;
    note.hidden = n === 0;
  }
  const box = form.querySelector('.estimate');
  const time = box.querySelector('[data-part="time"]');
  const speed = Number(box.dataset.rate);
  const images = Number(form.elements.steps.value) * Number(form.elements.batch.value);
  if (time && speed > 0) time.textContent = images > 0 ? duration(images / speed) : '–';
}

form.addEventListener('input', update);
form.addEventListener('change', (e) => {
  if (e.target.dataset.decides !== undefined) newDefaults();
});
form.querySelector('.set-defaults').hidden = true;
form.querySelector('[data-testid="problems"]')?.focus();
update();
