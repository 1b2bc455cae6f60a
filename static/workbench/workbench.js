// The list of runs: filters while you type, updates live, keeps the selection, and supports keyboard navigation.
import { Completion } from './complete.js';
import { narrow } from './columns.js';

const form = document.querySelector('[data-part="ask"]');
const results = document.querySelector('[data-part="results"]');
const chosen = new Set(); // values of selected boxes, including rows on other pages

/** address returns the URL of the form's query. */
function address() {
  const q = new URLSearchParams(new FormData(form));
  for (const [name, value] of [...q]) if (value === '') q.delete(name);
  return q.size ? `/runs?${q}` : '/runs';
}

let drawn = results?.innerHTML; // the list as last rendered by the server
let ticket = 0;
let wanted = null; // the URL being loaded, until its list is shown or its query is rejected

/** load shows the list of a URL and updates the browser's address. */
function load(url) {
  wanted = url;
  return take();
}

/** take fetches the wanted list, or refreshes the current one, and changes only the list on the page.
 * Responses may arrive out of order: only the newest request counts. */
async function take() {
  const mine = ++ticket;
  const url = wanted ?? location.pathname + location.search;
  const answer = await fetch(url).catch(() => null);
  const text = await answer?.text().catch(() => null);
  if (typeof text !== 'string' || mine !== ticket) return;
  const page = new DOMParser().parseFromString(text, 'text/html');
  const fresh = page.querySelector('[data-part="results"]');
  if (!fresh) {
    if (answer.ok) location.reload(); // the last run was deleted
    return;
  }
  if (wanted !== null) {
    wanted = null;
    const fault = page.querySelector('[data-part="fault"]').textContent;
    said('fault', fault);
    form.elements.q.toggleAttribute('aria-invalid', fault !== '');
    if (fault) return; // keep the list
    history.replaceState(null, '', url);
  }
  said('shown', page.querySelector('[data-part="shown"]').textContent);
  if (fresh.innerHTML === drawn) return;
  drawn = fresh.innerHTML;
  replace(fresh);
}

function said(part, text) {
  const at = form.querySelector(`[data-part="${part}"]`);
  if (at.textContent !== text) at.textContent = text;
}

/** replace inserts new results and keeps selection, focus and scroll position. */
function replace(fresh) {
  const sheet = results.querySelector('[data-part="sheet"]');
  const [left, top] = [sheet.scrollLeft, sheet.scrollTop];
  const held = document.activeElement?.closest('[data-run], [data-group]');
  const key = held && `[data-${held.dataset.run ? 'run' : 'group'}="${CSS.escape(held.dataset.run ?? held.dataset.group)}"]`;
  const box = document.activeElement?.matches('input[name="run"]');
  const head = document.activeElement?.closest('th')?.cellIndex;
  results.replaceChildren(...fresh.children);
  const now = results.querySelector('[data-part="sheet"]');
  now.scrollTo({ left, top, behavior: 'instant' });
  restore();
  if (key) (box ? results.querySelector(`${key} input[name="run"]`) : link(results.querySelector(key)))?.focus({ preventScroll: true });
  if (head !== undefined) now.querySelector(`th:nth-child(${head + 1}) a`)?.focus({ preventScroll: true });
}

const boxes = () => [...results.querySelectorAll('input[name="run"]')];
const link = (row) => row?.querySelector('.name > a');

/** restore reselects rows, and drops selected rows that no longer exist. */
function restore() {
  for (const box of boxes()) box.checked = chosen.has(box.value);
  const all = results.querySelector('[data-part="page-all"]');
  all.hidden = false;
  for (const part of results.querySelectorAll('[data-part="columns"]')) part.onclick = chooseColumns;
  count();
}

/** count shows the number of selected runs; actions are disabled without a selection. */
function count() {
  const bulk = results.querySelector('[data-part="bulk"]');
  const on = boxes();
  const picked = on.filter((b) => b.checked);
  chosen.clear();
  for (const b of picked) chosen.add(b.value);
  const everything = bulk.querySelector('[data-part="all"]')?.checked ?? false;
  const n = new Set(picked.flatMap((b) => b.value.split(','))).size;
  bulk.querySelector('[data-part="selected"]').textContent = everything ? 'All selected' : n ? `${n} selected` : 'Select runs in the table.';
  for (const button of bulk.querySelectorAll('button')) button.disabled = n === 0 && !everything;
  bulk.classList.toggle('active', n > 0 || everything);
  const page = results.querySelector('[data-part="page-all"]');
  page.checked = on.length > 0 && picked.length === on.length;
  page.indeterminate = picked.length > 0 && !page.checked;
}

/** chooseColumns opens the column chooser in a dialog. */
async function chooseColumns(e) {
  e.preventDefault();
  const answer = await fetch(e.currentTarget.href).catch(() => null);
  if (!answer?.ok) return location.assign(e.currentTarget.href);
  const inner = new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('[data-part="columns-form"]');
  const dialog = document.createElement('dialog');
  dialog.className = 'wide';
  dialog.setAttribute('aria-label', 'Columns');
  dialog.append(inner);
  dialog.onclose = () => dialog.remove();
  document.body.append(dialog);
  narrow(inner);
  dialog.showModal();
}

let from = null; // the last clicked box
/** pressed selects all rows between two boxes if Shift is held. */
function pressed(e) {
  const box = e.target.closest('input[name="run"]');
  if (!box) return;
  const all = boxes();
  const a = all.findIndex((b) => b.value === from);
  const b = all.indexOf(box);
  if (e.shiftKey && a >= 0) for (const one of all.slice(Math.min(a, b), Math.max(a, b) + 1)) one.checked = box.checked;
  from = box.value;
  count();
}

function key(e) {
  if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return;
  if (e.target.closest('input:not([type="checkbox"]), select, textarea')) {
    if (e.key === 'Escape') e.target.blur();
    return;
  }
  const rows = [...results.querySelectorAll('tbody tr')];
  const at = rows.indexOf(document.activeElement?.closest('tr'));
  if (e.key === '/') {
    form.elements.q.focus();
    e.preventDefault();
  } else if (e.key === 'j' || e.key === 'k') {
    link(rows[Math.min(rows.length - 1, Math.max(0, at + (e.key === 'j' ? 1 : -1)))])?.focus();
  } else if (e.key === 'x' && at >= 0) {
    rows[at].querySelector('input[name="run"]').click();
  }
}

/** busy reports whether a refresh would disturb the user: the page is hidden, a form in the list has focus, or a dialog is open. */
function busy() {
  const at = document.activeElement;
  return document.hidden || document.querySelector('dialog[open], [data-part="save"][open]') || (results.contains(at) && at.matches('input:not([type="checkbox"])'));
}

/** follow reloads the list when the server reports a change. */
function follow() {
  let late = false;
  let wait = 1000;
  const news = () => {
    late = true;
    if (!busy()) {
      late = false;
      take();
    }
  };
  const open = () => {
    const socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/ws/runs`);
    socket.onopen = () => {
      wait = 1000;
      news(); // catch up with changes since the page was rendered or the connection was lost
    };
    socket.onmessage = news;
    socket.onclose = () => {
      setTimeout(open, wait);
      wait = Math.min(30_000, wait * 2);
    };
  };
  open();
  document.addEventListener('visibilitychange', () => !document.hidden && news());
  document.addEventListener('focusout', () => late && setTimeout(() => late && news(), 100));
  document.addEventListener('toggle', () => late && news(), true);
}

/** visit opens links within the list without reloading the page. */
function visit(e) {
  if (e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
  const a = e.target.closest('th a, a[data-part="toggle"]');
  if (!a) return;
  e.preventDefault();
  const q = new URL(a.href).searchParams;
  for (const hidden of form.querySelectorAll('input[type="hidden"]')) hidden.remove();
  for (const name of ['sort', 'cols', 'view']) {
    if (!q.has(name)) continue;
    const input = Object.assign(document.createElement('input'), { type: 'hidden', name, value: q.get(name) });
    form.append(input);
  }
  load(a.pathname + a.search);
}

if (form) {
  let timer = 0;
  const changed = () => load(address());
  form.elements.q.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(changed, 150);
  });
  form.elements.group.onchange = changed;
  form.onsubmit = (e) => {
    e.preventDefault();
    clearTimeout(timer);
    changed();
  };
  form.querySelector('[data-part="go"]').hidden = true;
  new Completion(form.elements.q, document.getElementById('completions'));
  addEventListener('keydown', key);
  results.addEventListener('click', pressed);
  results.addEventListener('click', visit);
  results.addEventListener('change', (e) => {
    if (e.target.dataset.part === 'page-all') for (const box of boxes()) box.checked = e.target.checked;
    count();
  });
  restore();
  follow();
}
