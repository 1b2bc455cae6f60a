// Sweeps: the pages renew themselves while a sweep works; the form shows what belongs to the kind of question.
import '../compare/compare.js';

const every = 3000; // ms

/** renew replaces a part by what the server draws now, unless somebody is using it. */
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

/** kinds shows the fields of the kind that is chosen. */
function kinds(form) {
  const show = () => {
    const kind = form.elements.kind.value;
    for (const box of form.querySelectorAll('[data-kind]')) box.hidden = box.dataset.kind !== kind;
  };
  form.addEventListener('change', show);
  show();
}

for (const form of document.querySelectorAll('[data-part="plan"]')) kinds(form);
