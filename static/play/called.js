// The dialog to name a slot, its group and a code.

import { numbers } from './names.js';

const LONGEST = 60; // characters, as the server allows

/** ask opens the dialog for a slot and one of its codes. */
export function ask(app, slot, code) {
  const group = app.groups.find((g) => g.slots.includes(slot));
  const { called, name } = app.slots[slot];
  const known = app.names.of(slot, code);
  const fields = [
    { label: `Slot ${slot}`, value: called, usual: name, change: { slot } },
    ...(group.key ? [{ label: `Group, ${numbers(group.slots)}`, value: group.called, usual: group.name, change: { factor: group.key } }] : []),
    { label: `Code ${app.text(code)} of slot ${slot}`, value: known?.told === undefined ? '' : known.name, usual: known?.told ?? known?.name ?? '', change: { slot, code } },
  ].map(field);

  const dialog = document.createElement('dialog');
  dialog.className = 'naming';
  dialog.dataset.testid = 'play-naming';
  dialog.setAttribute('aria-labelledby', 'naming-title');
  const form = document.createElement('form');
  form.method = 'dialog';
  const title = Object.assign(document.createElement('h2'), { id: 'naming-title', textContent: 'Names' });
  const hint = Object.assign(document.createElement('p'), { className: 'quiet', textContent: 'Leave a field empty to use the factor-based name.' });
  const said = Object.assign(document.createElement('p'), { className: 'bad', role: 'alert' });
  const row = Object.assign(document.createElement('div'), { className: 'row' });
  const save = Object.assign(document.createElement('button'), { className: 'primary', textContent: 'Save' });
  const cancel = Object.assign(document.createElement('button'), { type: 'button', textContent: 'Cancel' });
  row.append(save, cancel);
  form.append(title, ...fields.map((f) => f.element), hint, said, row);
  dialog.append(form);
  cancel.addEventListener('click', () => dialog.close());
  dialog.addEventListener('close', () => dialog.remove());
  form.addEventListener('submit', async (e) => {
    e.preventDefault();
    try {
      for (const f of fields) await f.save(app);
      dialog.close();
    } catch (err) {
      said.textContent = err.message;
    }
  });
  document.getElementById('play').append(dialog);
  dialog.showModal();
}

/** field creates a line of the dialog: its element, and save, which sends the name if it has changed. */
function field({ label, value, usual, change }) {
  const element = document.createElement('label');
  const text = Object.assign(document.createElement('span'), { textContent: label });
  const input = Object.assign(document.createElement('input'), { value: value ?? '', placeholder: usual, maxLength: LONGEST, autocomplete: 'off' });
  element.append(text, input);
  let kept = value ?? '';
  const save = async (app) => {
    const name = input.value.trim();
    if (name === kept) return;
    await app.rename({ ...change, name });
    kept = name;
  };
  return { element, save };
}
