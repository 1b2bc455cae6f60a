// The evaluation page: follows a running evaluation and reloads when it ends.
const page = document.querySelector('.measure');
const EVERY = 1500; // ms

async function look() {
  try {
    const answer = await fetch(location.href);
    if (!answer.ok) throw new Error(`the server returned status ${answer.status}`);
    const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
    if (fresh.querySelector('.measure[data-live]')) {
      page.querySelector('[data-part="state"]').replaceWith(fresh.querySelector('[data-part="state"]'));
    } else {
      page.replaceChildren(...fresh.querySelector('.measure').childNodes);
      return;
    }
  } catch {
    // The server may be restarting; keep the current state.
  }
  setTimeout(look, EVERY);
}

if (page?.dataset.live !== undefined) setTimeout(look, EVERY);
