// The table of runs: filters while one types, follows live runs, and can be walked with the keyboard.
const table = () => document.querySelector('table.runs');
const form = document.querySelector('form.filter');
const every = 3000; // ms between looks at live runs

function address() {
  const q = new URLSearchParams(new FormData(form));
  if (!q.get('q')) q.delete('q');
  return q.size ? `/runs?${q}` : '/runs';
}

let ticket = 0;
/** refresh takes the rows of an address, as the server draws them. */
async function refresh(url) {
  const mine = ++ticket;
  const answer = await fetch(url).catch(() => null);
  if (!answer?.ok || mine !== ticket) return;
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const fresh = page.querySelector('table.runs');
  if (!fresh) return location.reload();
  const chosen = new Set(selected().map((box) => box.value));
  const held = document.activeElement?.closest('[data-run]')?.dataset.run;
  table().tHead.replaceWith(fresh.tHead);
  table().tBodies[0].replaceWith(fresh.tBodies[0]);
  for (const box of document.querySelectorAll('.runs input[name="run"]')) box.checked = chosen.has(box.value);
  count();
  const shown = form.querySelector('[data-testid="shown"]');
  const text = page.querySelector('[data-testid="shown"]').textContent;
  if (shown.textContent !== text) shown.textContent = text;
  document.querySelector('.nothing').hidden = page.querySelector('.nothing').hidden;
  if (held) link(document.querySelector(`[data-run="${CSS.escape(held)}"]`))?.focus();
}

const selected = () => [...document.querySelectorAll('.runs input[name="run"]:checked')];

/** count says how many runs are selected; without any there is nothing to evaluate. */
function count() {
  const choice = document.getElementById('evaluate-runs');
  if (!choice) return;
  const n = selected().length;
  choice.querySelector('[data-part="selected"]').textContent = n ? `${n} selected` : 'Select runs in the table.';
  for (const button of choice.querySelectorAll('button')) button.disabled = n === 0;
}

const link = (row) => row?.querySelector('.name a');

function key(e) {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.target.closest('input, select, textarea')) {
    if (e.key === 'Escape') e.target.blur();
    return;
  }
  if (e.key === '/') {
    form.elements.q.focus();
    e.preventDefault();
  } else if (e.key === 'j' || e.key === 'k') {
    const rows = [...document.querySelectorAll('[data-run]')];
    const at = rows.indexOf(document.activeElement?.closest('[data-run]'));
    link(rows[Math.min(rows.length - 1, Math.max(0, at + (e.key === 'j' ? 1 : -1)))])?.focus();
  }
}

if (form) {
  let timer = 0;
  const changed = () => {
    history.replaceState(null, '', address());
    refresh(address());
  };
  form.elements.q.oninput = () => {
    clearTimeout(timer);
    timer = setTimeout(changed, 120);
  };
  form.elements.live.onchange = changed;
  form.onsubmit = (e) => {
    e.preventDefault();
    changed();
  };
  form.querySelector('button').hidden = true;
  addEventListener('keydown', key);
  addEventListener('change', count);
  count();
  setInterval(() => {
    if (!document.hidden && document.querySelector('.runs [data-state="running"], .runs [data-state="queued"], .runs [data-state="stopping"]')) refresh(address());
  }, every);
}
