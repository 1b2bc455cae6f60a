// The form of a new run. Changing the dataset, model or preset resets unedited fields to the new defaults.
import { duration } from '../shared/format.js';

const form = document.querySelector('form.run-form');
const input = (field) => field.querySelector('input, select');
const read = (el) => (el.type === 'checkbox' ? String(el.checked) : el.value);
const write = (el, v) => (el.type === 'checkbox' ? (el.checked = v === 'true') : (el.value = v));

/** newDefaults loads the form for another dataset, model or preset and applies the differences; the fields depend on the model. */
async function newDefaults() {
  const page = await ask('defaults', ['dataset', 'model', 'preset'], { apply: 'defaults' });
  if (!page) return;
  merge(form, page, 'group', (group, fresh) => merge(group.querySelector('.fields'), fresh, 'field', take));
  form.querySelector('.estimate').replaceWith(page.querySelector('.estimate'));
  update();
  newSize();
}

/** newSize loads the parameter count of the entered configuration. */
async function newSize() {
  const page = await ask('size', [...form.querySelectorAll('[data-field]')].map((f) => f.dataset.field));
  if (page) form.querySelector('.size').replaceWith(page.querySelector('.size'));
}

const tickets = {};
/** ask fetches the form with some fields as entered; null if a later request of the same kind superseded this one. */
async function ask(kind, names, extra = {}) {
  const mine = (tickets[kind] = (tickets[kind] ?? 0) + 1);
  const q = new URLSearchParams(extra);
  for (const name of names) q.set(name, read(form.elements[name]));
  const answer = await fetch(`/runs/new?${q}`).catch(() => null);
  if (!answer?.ok || mine !== tickets[kind]) return null;
  return new DOMParser().parseFromString(await answer.text(), 'text/html');
}

/** merge updates list to the children of fresh, matched by data-<key>; children in both are kept and passed to both(here, fresh). */
function merge(list, fresh, key, both) {
  const find = (root, name) => root.querySelector(`[data-${key}="${name}"]`);
  for (const old of list.querySelectorAll(`[data-${key}]`)) if (!find(fresh, old.dataset[key])) old.remove();
  let before = null;
  for (const next of [...fresh.querySelectorAll(`[data-${key}]`)]) {
    const here = find(list, next.dataset[key]);
    if (here) both(here, next);
    else if (before) before.after(next);
    else list.prepend(next);
    before = here ?? next;
  }
}

/** take sets a field to its new default unless the user edited it. */
function take(field, fresh) {
  const el = input(field);
  if (el.dataset.decides === undefined && read(el) === field.dataset.default) write(el, fresh.dataset.default);
  field.dataset.default = fresh.dataset.default;
  for (const part of ['default', 'source']) {
    const [to, from] = [field, fresh].map((f) => f.querySelector(`[data-part="${part}"]`));
    if (to && from) to.textContent = from.textContent;
  }
}

/** update counts the changed fields and estimates the duration of the run. */
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
  else if (['network', 'ablation'].includes(e.target.closest('[data-group]')?.dataset.group)) newSize();
});
form.querySelector('.set-defaults').hidden = true;
form.querySelector('[data-testid="problems"]')?.focus();
update();
