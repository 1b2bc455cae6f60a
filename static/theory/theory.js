// The theory page: sliders next to the numbers, and results that update while a slider moves. The server computes and renders them;
// a newer request replaces an older one, and the URL always matches the results shown.
import { place, valueAt } from './slider.js';

const form = document.querySelector('form.entries');
const answers = document.querySelector('[data-part="answers"]');
const said = document.querySelector('[data-part="said"]');

function fields() {
  return [...form.querySelectorAll('[data-field]')].map((field) => {
    const number = field.querySelector('input[type="number"]');
    const range = field.querySelector('input[type="range"]');
    const scale = { min: Number(number.min), max: Number(number.max), log: range.dataset.log !== undefined, whole: number.step === '1' };
    return { number, range, scale };
  });
}

let waiting = null;
let under = null;

/** soon requests new results after a short pause in the input. */
function soon() {
  clearTimeout(waiting);
  waiting = setTimeout(ask, 60);
}

async function ask() {
  if (!form.checkValidity()) return;
  const address = `${form.getAttribute('action')}?${new URLSearchParams(new FormData(form))}`;
  under?.abort();
  const mine = (under = new AbortController());
  answers.setAttribute('aria-busy', 'true');
  try {
    const answer = await fetch(address, { signal: mine.signal });
    if (!answer.ok) throw new Error(`the server returned status ${answer.status}`);
    show(new DOMParser().parseFromString(await answer.text(), 'text/html'));
    history.replaceState(null, '', address);
    said.textContent = 'Results updated.';
  } catch (e) {
    if (e.name !== 'AbortError') said.textContent = `Failed to update the results: ${e.message}. The page shows the previous ones.`;
  } finally {
    if (under === mine) answers.removeAttribute('aria-busy');
  }
}

/** show replaces results and links with those of a page, and leaves the form's inputs unchanged. */
function show(page) {
  answers.replaceChildren(...page.querySelector('[data-part="answers"]').childNodes);
  const rates = [document, page].map((p) => p.querySelector('[data-part="rates"]'));
  if (rates[0] && rates[1]) rates[0].replaceWith(rates[1]);
  form.querySelectorAll('.error').forEach((e) => e.remove());
  form.querySelectorAll('[aria-invalid]').forEach((e) => e.removeAttribute('aria-invalid'));
}

if (form) {
  for (const { number, range, scale } of fields()) {
    range.hidden = false;
    range.value = place(Number(number.value), scale);
    range.addEventListener('input', () => {
      number.value = valueAt(Number(range.value), scale);
      soon();
    });
    number.addEventListener('input', () => {
      range.value = place(Number(number.value), scale);
      soon();
    });
  }
  form.addEventListener('change', soon);
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    ask();
  });
}
