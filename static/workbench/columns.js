// The page to choose columns: a search box filters the list.

/** narrow makes a form's search box hide columns that do not contain its words. */
export function narrow(form) {
  const find = form.querySelector('[data-part="find"]');
  find.hidden = false;
  find.oninput = () => {
    const words = find.value.toLowerCase().split(/\s+/);
    for (const label of form.querySelectorAll('[data-text]')) label.hidden = !words.every((w) => label.dataset.text.includes(w));
    for (const set of form.querySelectorAll('fieldset')) set.hidden = !set.querySelector('[data-text]:not([hidden])');
  };
  find.onkeydown = (e) => {
    if (e.key === 'Enter') e.preventDefault();
  };
}

if (typeof document !== 'undefined') for (const form of document.querySelectorAll('[data-part="columns-form"]')) narrow(form);
