// The page of measurements follows an evaluation under way, and is drawn anew when it has ended.
const page = document.querySelector('.measure');
const EVERY = 1500; // ms

async function look() {
  try {
    const answer = await fetch(location.href);
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
    if (fresh.querySelector('.measure[data-live]')) {
      page.querySelector('[data-part="state"]').replaceWith(fresh.querySelector('[data-part="state"]'));
    } else {
      page.replaceChildren(...fresh.querySelector('.measure').childNodes);
      return;
    }
  } catch {
    // The server may be starting again; what is shown stays.
  }
  setTimeout(look, EVERY);
}

if (page?.dataset.live !== undefined) setTimeout(look, EVERY);
