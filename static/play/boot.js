// Starts a frozen page, as a classic script: unpacks the file's blobs, inserts the model's page and registers the modules in an import map.
// Blobs are deflated and encoded as septets: seven bits per character.
(async () => {
  const say = (text) => { document.getElementById('main').textContent = text; };

  // septets decodes text written by freeze.go: a character below 128 is one septet; a character from 160 up is one of the four forbidden
  // septets and the one after it.
  const FORBIDDEN = [0, 10, 13, 60];
  const septets = (text, length) => {
    const out = new Uint8Array(length);
    let bits = 0, held = 0, at = 0;
    const put = (seven) => {
      bits = ((bits << 7) | seven) & 0x7fff;
      held += 7;
      if (held >= 8 && at < length) { held -= 8; out[at++] = bits >> held; }
    };
    for (let i = 0; i < text.length; i++) {
      const c = text.charCodeAt(i);
      if (c < 128) put(c);
      else { put(FORBIDDEN[(c - 160) >> 7]); put((c - 160) & 127); }
    }
    return out;
  };
  const inflate = async (bytes) => new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'))).arrayBuffer();
  const blob = (name) => {
    const { textContent, dataset } = document.getElementById(`blob:${name}`);
    return inflate(septets(textContent, Number(dataset.length)));
  };

  try {
    if (typeof DecompressionStream === 'undefined') throw new Error('This browser is too old for this page (it lacks DecompressionStream). Use a browser from 2023 or later.');
    const page = JSON.parse(new TextDecoder().decode(await blob('page').catch(() => { throw new Error('This file is damaged. Download it again.'); })));
    globalThis.frozen = { models: page.models, blob };
    const style = document.createElement('style');
    style.textContent = page.styles;
    document.head.append(style);
    const key = location.hash.slice(1).split(/[?/]/)[0];
    const model = page.models.find((m) => m.key === key) ?? page.models[0];
    document.title = model.title;
    document.getElementById('main').innerHTML = model.page;
    const data = document.createElement('script');
    data.type = 'application/json';
    data.id = 'play-data';
    data.textContent = JSON.stringify(model.data);
    document.body.append(data);
    const imports = {};
    for (const [name, source] of Object.entries(page.scripts)) imports[name] = `data:text/javascript;charset=utf-8,${encodeURIComponent(source)}`;
    const map = document.createElement('script');
    map.type = 'importmap';
    map.textContent = JSON.stringify({ imports });
    document.head.append(map);
    const main = document.createElement('script');
    main.type = 'module';
    main.textContent = "import 'play/play.js';";
    document.body.append(main);
  } catch (err) {
    say(err.message);
  }
})();
