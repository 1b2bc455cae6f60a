// The form of a new run: another dataset, model or preset moves the entries nobody has touched to its defaults.
import { duration } from '../shared/format.js';

const form = document.querySelector('form.run-form');
const input = (field) => field.querySelector('input, select');
const read = (el) => (el.type === 'checkbox' ? String(el.checked) : el.value);
const write = (el, v) => (el.type === 'checkbox' ? (el.checked = v === 'true') : (el.value = v));

/** newDefaults asks for the form of another dataset, model or preset and takes over what differs; entries come and go with the model. */
async function newDefaults() {
  const page = await ask('defaults', ['dataset', 'model', 'preset'], { apply: 'defaults' });
  if (!page) return;
  merge(form, page, 'group', (group, fresh) => merge(group.querySelector('.fields'), fresh, 'field', take));
  form.querySelector('.estimate').replaceWith(page.querySelector('.estimate'));
  update();
  newSize();
}

/** newSize asks how many parameters the model has that is typed in. */
async function newSize() {
  const page = await ask('size', [...form.querySelectorAll('[data-field]')].map((f) => f.dataset.field));
  if (page) form.querySelector('.size').replaceWith(page.querySelector('.size'));
}

const tickets = {};
/** ask fetches the form with some entries as typed; null where a later question of the same kind overtook this one. */
async function ask(kind, names, extra = {}) {
  const mine = (tickets[kind] = (tickets[kind] ?? 0) + 1);
  const q = new URLSearchParams(extra);
  for (const name of names) q.set(name, read(form.elements[name]));
  const answer = await fetch(`/runs/new?${q}`).catch(() => null);
  if (!answer?.ok || mine !== tickets[kind]) return null;
  return new DOMParser().parseFromString(await answer.text(), 'text/html');
}

/** merge gives list the children of fresh by the name in data-<key>: what both have goes through both(here, fresh) and stays where it is. */
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
  else if (['network', 'ablation'].includes(e.target.closest('[data-group]')?.dataset.group)) newSize();
});
form.querySelector('.set-defaults').hidden = true;
form.querySelector('[data-testid="problems"]')?.focus();
update();
