// Sweeps: pages refresh while a sweep is running; the form shows the fields of the selected type.
import '../compare/compare.js';

const every = 3000; // ms

/** renew replaces a part with the server's current version, unless one of its forms has the focus. */
async function renew(part) {
  const old = document.querySelector(part);
  if (document.hidden || !old || old.contains(document.activeElement) && document.activeElement.closest('form, summary')) return;
  const answer = await fetch(location.href).catch(() => null);
  if (!answer?.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector(part);
  if (!fresh) return;
  const open = [...old.querySelectorAll('details')].map((d) => d.open);
  fresh.querySelectorAll('details').forEach((d, i) => (d.open = open[i] ?? d.open));
  const scrolled = [...old.querySelectorAll('.scroll')].map((s) => s.scrollLeft);
  const held = document.activeElement?.getAttribute('href');
  old.replaceWith(fresh);
  fresh.querySelectorAll('.scroll').forEach((s, i) => (s.scrollLeft = scrolled[i] ?? 0));
  if (held) fresh.querySelector(`a[href="${CSS.escape(held)}"]`)?.focus({ preventScroll: true });
}

if (document.querySelector('[data-live]')) {
  const part = document.querySelector('[data-part="sweep"]') ? '[data-part="sweep"]' : '[data-part="sweeps"]';
  setInterval(() => document.querySelector(`${part}[data-live="true"], ${part} [data-live="true"]`) && renew(part), every);
}

/** choices shows only the fields of the selected type, search and race. */
function choices(form) {
  const show = () => {
    const f = form.elements;
    for (const box of form.querySelectorAll('[data-kind]')) box.hidden = box.dataset.kind !== f.kind.value;
    for (const box of form.querySelectorAll('[data-search]')) box.hidden = box.dataset.search !== f.search.value;
    for (const box of form.querySelectorAll('[data-race]')) box.hidden = !f.race.checked;
  };
  form.addEventListener('change', show);
  show();
}

/** lines makes the button that adds a line for a hyperparameter. */
function lines(form) {
  const add = form.querySelector('[data-part="add"]');
  add.hidden = false;
  add.onclick = () => {
    const all = form.querySelectorAll('[data-part="vary-line"]');
    const line = all[all.length - 1].cloneNode(true);
    line.querySelector('.error')?.remove();
    line.querySelector('select').value = '';
    const values = line.querySelector('input');
    values.value = '';
    for (const name of ['aria-invalid', 'aria-describedby']) values.removeAttribute(name);
    all[all.length - 1].after(line);
    line.querySelector('select').focus();
  };
}

const settled = 400; // ms without a change before the estimate is requested

/** estimate updates the estimated work as the form is filled in; full errors are shown when the sweep is started. */
function estimate(form) {
  let timer = 0;
  let ticket = 0;
  const ask = async () => {
    const mine = ++ticket;
    const body = new URLSearchParams(new FormData(form));
    body.set('do', 'estimate');
    const answer = await fetch(form.action, { method: 'POST', body }).catch(() => null);
    const text = await answer?.text().catch(() => null);
    if (mine !== ticket || !text) return;
    const fresh = new DOMParser().parseFromString(text, 'text/html');
    const problem = answer.ok ? null : fresh.querySelector('[data-part="plan"] :is(.error, .bad)');
    form.querySelector('[data-part="estimate"]').textContent = problem ? `No estimate yet: ${problem.textContent.trim()}` : (fresh.querySelector('[data-part="estimate"]')?.textContent.trim() ?? '');
  };
  form.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(ask, settled);
  });
  form.querySelector('[data-testid="count"]').hidden = true;
  ask();
}

for (const form of document.querySelectorAll('[data-part="plan"]')) {
  choices(form);
  lines(form);
  estimate(form);
}
