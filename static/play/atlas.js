// The atlas while images are being encoded: polls the progress and reloads the page when more is known.

const page = document.querySelector('.atlas[data-waiting]');
if (page) follow();

async function follow() {
  const address = `/api${location.pathname}`;
  let known = null;
  for (;;) {
    const reply = await fetch(address).catch(() => null);
    const body = await reply?.json().catch(() => null);
    if (body) {
      const now = `${body.state} ${body.images}`;
      if (known !== null && now !== known) return location.reload();
      if (body.state === 'ready') return location.reload();
      known = now;
      const said = document.querySelector('[data-testid="atlas-progress"]');
      if (said && body.of) said.textContent = `Encoding images: ${body.done.toLocaleString('en')} of ${body.of.toLocaleString('en')}. This page updates automatically.`;
    }
    await new Promise((done) => setTimeout(done, 700));
  }
}
