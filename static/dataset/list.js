// The list of datasets, and the page of one that is not ready: while a dataset is being added, the states are refreshed from the
// server.
const every = 1000; // ms

const sets = () => document.getElementById('sets');

let said = '';
/** tell announces changes of the entries' states, but not every step of their progress. */
function tell() {
  const entries = [...document.querySelectorAll('[data-testid="state"]')];
  const text = entries.map((chip) => `${chip.closest('.entry')?.id ?? document.title}: ${chip.textContent}`).join('; ');
  if (text === said) return;
  if (said) document.getElementById('said').textContent = text || 'All datasets are ready.';
  said = text;
}

/** place describes the focused element, so that it can be found after the refresh; null if there is none. */
function place() {
  const held = document.activeElement;
  if (!sets().contains(held)) return null;
  const entry = held.closest('[id]');
  const alike = [...entry.querySelectorAll(held.tagName)];
  return { id: entry.id, tag: held.tagName, n: alike.indexOf(held) };
}

/** keep reuses unchanged entries, so that their images do not reload and flash. */
function keep(fresh) {
  document.adoptNode(fresh);
  for (const entry of fresh.querySelectorAll('.set')) {
    const shown = document.getElementById(entry.id);
    if (shown?.isEqualNode(entry)) entry.replaceWith(shown);
  }
}

async function refresh() {
  const answer = await fetch(location.pathname).catch(() => null);
  if (!answer?.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const fresh = page.getElementById('sets');
  if (!fresh || fresh.hasAttribute('data-waits') !== sets().hasAttribute('data-waits')) return location.reload();
  if (sets().querySelector('details[open]')) return; // a confirmation is open
  const held = place();
  const old = sets();
  keep(fresh);
  old.replaceWith(fresh);
  const known = page.getElementById('known');
  const shown = document.getElementById('known');
  if (known && shown) shown.replaceWith(known);
  else shown?.remove();
  if (held) document.getElementById(held.id)?.querySelectorAll(held.tag)[held.n]?.focus();
  tell();
}

tell();
setInterval(() => {
  if (!document.hidden && sets().hasAttribute('data-live')) refresh();
}, every);
