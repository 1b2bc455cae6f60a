// The dataset page without reloads: links and forms draw the new state into the same elements. The state is {index, seed}, which the
// page's URL always mirrors. In a complete dataset, index and classes follow from each other; for others the server returns
// {index, classes, near}, where near is the images of every strip.

/** indexOf returns the image of one class per factor: row-major, the last factor fastest. */
export function indexOf(classes, sizes) {
  return classes.reduce((index, c, f) => index * sizes[f] + c, 0);
}

/** classesOf is the inverse of indexOf. */
export function classesOf(index, sizes) {
  const classes = new Array(sizes.length);
  for (let f = sizes.length - 1; f >= 0; f--) {
    classes[f] = index % sizes[f];
    index = Math.floor(index / sizes[f]);
  }
  return classes;
}

/** readIndex parses a typed index: {index}, or {error} with a sentence. */
export function readIndex(text, data) {
  const plain = text.trim().replaceAll(",", "");
  if (!/^[-+]?\d+$/.test(plain)) {
    return { error: `“${text}” is not an image number; ${data.name} has images 0 to ${data.len - 1}.` };
  }
  const index = Number(plain);
  if (index < 0 || index >= data.len) {
    return { error: `There is no image ${plain}; ${data.name} has images 0 to ${data.len - 1}.` };
  }
  return { index };
}

/** readTuple parses one typed class per factor: {index}, or {error} with a sentence that names the factor. */
export function readTuple(text, data) {
  const parts = text.split(/[., ]+/).filter((part) => part !== "");
  const odd = parts.find((part) => !/^[-+]?\d+$/.test(part));
  if (odd !== undefined) {
    return { error: `“${odd}” is not a class; give one whole number per factor.` };
  }
  if (parts.length !== data.factors.length) {
    return { error: `${counted(parts.length, "class", "classes")} given for the ${counted(data.factors.length, "factor", "factors")} of ${data.name}; give one class per factor.` };
  }
  const classes = parts.map(Number);
  const sizes = data.factors.map((factor) => factor.values.length);
  const f = classes.findIndex((c, i) => c < 0 || c >= sizes[i]);
  if (f >= 0) {
    return { error: `There is no class ${classes[f]} of ${data.factors[f].name}; its classes are 0 to ${sizes[f] - 1}.` };
  }
  return { index: indexOf(classes, sizes) };
}

const counted = (n, one, many) => `${n} ${n === 1 ? one : many}`;

/** readSeed parses a typed seed: {seed}, or {error} with a sentence. */
export function readSeed(text) {
  const seed = Number(text.trim());
  if (text.trim() === "" || !Number.isInteger(seed) || seed < 0 || seed > maxSeed) {
    return { error: `“${text}” is not a seed; use a whole number from 0 to ${maxSeed}.` };
  }
  return { seed };
}

const maxSeed = 2 ** 31 - 1;

/** describe returns an image's factor values in words. */
export function describe(index, data, classes = classesOf(index, data.factors.map((factor) => factor.values.length))) {
  const parts = data.factors.map((factor, f) => `${factor.label} ${factor.values[classes[f]]}`);
  return parts.length ? `Image ${index}: ${parts.join(", ")}` : `Image ${index}`;
}

/** nearOf returns the images of every strip around a tuple of a complete dataset. */
export function nearOf(classes, data) {
  const sizes = data.factors.map((factor) => factor.values.length);
  return data.factors.map((factor, f) => factor.shown.map((c) => indexOf(classes.with(f, c), sizes)));
}

/** nearest returns the position in a strip with an image and the class nearest to c; −1 if no position has an image. */
export function nearest(c, shown, images) {
  let best = -1;
  shown.forEach((value, n) => {
    if (images[n] >= 0 && (best < 0 || Math.abs(value - c) < Math.abs(shown[best] - c))) best = n;
  });
  return best;
}

/** newest returns a function that calls show with each URL once its image is loaded, never with an older one after a newer. */
function newest(show, fail) {
  let asked = 0;
  let shown = 0;
  let wanted = "";
  return async (address) => {
    if (address === wanted) return;
    wanted = address;
    const turn = ++asked;
    const picture = new Image();
    picture.src = address;
    try {
      await picture.decode();
    } catch {
      if (turn === asked) fail(address);
      return;
    }
    if (turn > shown) {
      shown = turn;
      show(address);
    }
  };
}

/** roving makes a list of links one tab stop; arrows, Home and End move within it. */
function roving(list) {
  const links = () => [...list.querySelectorAll("a.cell[href]")];
  const settle = (link) => {
    for (const l of links()) l.tabIndex = l === link ? 0 : -1;
  };
  list.addEventListener("keydown", (event) => {
    const all = links();
    const at = all.indexOf(document.activeElement);
    const to = step(event.key, at, all);
    if (at < 0 || to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const link = all[Math.min(all.length - 1, Math.max(0, to))];
    settle(link);
    link.focus();
  });
  list.addEventListener("focusin", (event) => {
    const link = event.target.closest("a.cell");
    if (link) settle(link);
  });
  return () => settle(list.querySelector("a.cell[href][aria-current]") ?? list.querySelector("a.cell[href]"));
}

function step(key, at, links) {
  const row = columnsOf(links);
  switch (key) {
    case "ArrowLeft": return at - 1;
    case "ArrowRight": return at + 1;
    case "ArrowUp": return at - row < 0 ? at : at - row;
    case "ArrowDown": return at + row >= links.length ? at : at + row;
    case "Home": return 0;
    case "End": return links.length - 1;
  }
}

/** columnsOf returns the number of links in the first row, which depends on the page width. */
function columnsOf(links) {
  const top = links[0].getBoundingClientRect().top;
  const next = links.findIndex((link) => link.getBoundingClientRect().top > top + 1);
  return next < 0 ? links.length : next;
}

/** mount attaches the page's behaviour to root. */
function mount(root, data) {
  const api = `/api/datasets/${encodeURIComponent(data.name)}/`;
  const sizes = data.factors.map((factor) => factor.values.length);
  const $ = (selector) => root.querySelector(selector);
  const address = new URL(location.href);
  const carried = ["checkpoint", "a", "b"].filter((name) => address.searchParams.get(name));
  let state = { index: data.index, seed: data.seed, classes: data.classes, near: data.near };
  let grid = data.grid;
  let pending = 0;
  let questions = 0;

  const say = (text) => { document.getElementById("said").textContent = text; };
  const lost = () => complain("index", "No response from the server; the page may be out of date.");

  const image = $("#image");
  const showImage = newest((src) => { image.src = src; }, lost);

  const rows = data.factors.map((factor, f) => {
    const row = root.querySelector(`.factor[data-factor="${CSS.escape(factor.name)}"]`);
    const strip = row.querySelector(".strip");
    return {
      f, factor, strip,
      select: row.querySelector("select"),
      range: row.querySelector("input[type=range]"),
      output: row.querySelector("output"),
      cells: [...strip.querySelectorAll("a.cell")],
      settle: roving(strip),
      show: newest((src) => { for (const i of strip.querySelectorAll("image")) i.setAttribute("href", src); }, lost),
    };
  });
  const gridList = $("#grid");
  const gridCells = [...gridList.querySelectorAll("a.cell")];
  const settleGrid = roving(gridList);
  const showGrid = newest((src) => { for (const i of gridList.querySelectorAll("image")) i.setAttribute("href", src); }, lost);

  function pageOf(s) {
    const q = new URLSearchParams();
    for (const name of carried) q.set(name, address.searchParams.get(name));
    q.set("index", s.index);
    q.set("grid", s.seed);
    return `${location.pathname}?${q}`;
  }

  function playOf(side) {
    const q = new URLSearchParams();
    for (const [name, value] of Object.entries(otherSide(side))) q.set(name, value);
    q.set("dataset", data.name);
    q.set(side, state.index);
    return `/play?${q}`;
  }

  /** otherSide returns the parameters last sent to the playground, or those in the URL, without the side about to be sent. */
  function otherSide(side) {
    const kept = { ...remembered(data.name) };
    for (const name of carried) kept[name] = address.searchParams.get(name);
    delete kept[side];
    return kept;
  }

  /** complain shows an error beside a field, or clears it. */
  function complain(field, text) {
    $(`#${field}-error`).textContent = text;
    if (text) $(`#${field}`).setAttribute("aria-invalid", "true");
    else $(`#${field}`).removeAttribute("aria-invalid");
  }

  function drawSoon() {
    if (!pending) pending = requestAnimationFrame(() => { pending = 0; draw(); });
  }

  function draw() {
    const { classes } = state;
    showImage(`${api}images/${state.index}.png`);
    image.alt = describe(state.index, data, classes);
    $("#index").value = state.index;
    $("#tuple").value = classes.join(".");
    complain("index", "");
    complain("tuple", "");
    for (const row of rows) drawRow(row, classes, state.near[row.f]);
    drawGrid();
    for (const input of root.querySelectorAll("input[type=hidden][name=grid]")) input.value = state.seed;
    for (const input of root.querySelectorAll("input[type=hidden][name=index]")) input.value = state.index;
    drawLinks();
  }

  function drawLinks() {
    $("#send-a").href = playOf("a");
    $("#send-b").href = playOf("b");
    $("#reroll").href = pageOf({ ...state, seed: (state.seed + 1) % maxSeed });
    const random = new URL(pageOf(state), location.href);
    random.searchParams.set("index", "random");
    $("#random").href = random.pathname + random.search;
  }

  function drawRow(row, classes, near) {
    const { f, factor } = row;
    row.select.value = row.range.value = classes[f];
    row.range.setAttribute("aria-valuetext", factor.values[classes[f]]);
    row.output.textContent = classes[f];
    row.cells.forEach((cell, n) => {
      if (near[n] >= 0) {
        cell.href = pageOf({ ...state, index: near[n] });
        cell.removeAttribute("aria-disabled");
      } else {
        cell.removeAttribute("href");
        cell.setAttribute("aria-disabled", "true");
      }
      mark(cell, factor.shown[n] === classes[f]);
    });
    const first = near[0] >= 0 ? near[0] : state.index; // the strip is the same for every current value
    row.show(`${api}strip/${encodeURIComponent(factor.name)}.png?index=${first}`);
    if (!row.strip.contains(document.activeElement)) row.settle();
  }

  function drawGrid() {
    gridCells.forEach((cell, n) => {
      cell.href = pageOf({ ...state, index: grid[n] });
      cell.title = `Image ${grid[n]}`;
      cell.setAttribute("aria-label", `Image ${grid[n]}`);
      mark(cell, grid[n] === state.index);
    });
    showGrid(`${api}grid.png?seed=${state.seed}&n=${grid.length}&columns=${data.columns}`);
    if (!gridList.contains(document.activeElement)) settleGrid();
  }

  function mark(cell, current) {
    if (current) cell.setAttribute("aria-current", "true");
    else cell.removeAttribute("aria-current");
  }

  /** show moves to an image; a deliberate move adds a step to the browser's history, a drag does not. */
  async function show(index, deliberate) {
    const around = data.complete ? local(index) : await ask(`images/${index}.json?near=1`);
    if (around) settleOn(around, deliberate);
  }

  function local(index) {
    const classes = classesOf(index, sizes);
    return { index, classes, near: nearOf(classes, data) };
  }

  function settleOn({ index, classes, near }, deliberate) {
    state = { ...state, index, classes, near: near ?? [] };
    drawSoon();
    if (deliberate) {
      history.pushState(null, "", pageOf(state));
      say(describe(index, data, classes));
    }
  }

  /** ask requests an image and its strips; undefined if a newer request was made meanwhile or there is no response. */
  async function ask(path) {
    const turn = ++questions;
    const reply = await fetch(api + path).catch(() => null);
    const answer = await reply?.json().catch(() => null);
    if (turn !== questions) return undefined;
    if (answer && reply.ok) return answer;
    if (answer && reply.status === 404) return { error: answer.error };
    lost();
    return undefined;
  }

  /** pick changes a factor's value; in an incomplete dataset, to the nearest with an image while the others are fixed. */
  async function pick(f, c, deliberate) {
    const wanted = state.classes.with(f, c);
    if (data.complete) {
      show(indexOf(wanted, sizes), deliberate);
      return;
    }
    const { shown } = data.factors[f];
    const near = state.near[f];
    const found = await ask(`images.json?near=1&classes=${wanted.join(".")}`);
    if (!found) return;
    if (!found.error) settleOn(found, deliberate);
    else if (nearest(c, shown, near) >= 0) show(near[nearest(c, shown, near)], deliberate);
  }

  async function reroll(seed, push) {
    const reply = await fetch(`${api}grid.json?seed=${seed}&n=${grid.length}`);
    if (!reply.ok) throw new Error(`grid: ${reply.status}`);
    const { images } = await reply.json();
    grid = images.map((im) => im.index);
    state = { ...state, seed };
    $("#seed").value = seed;
    complain("seed", "");
    drawSoon();
    if (push) history.pushState(null, "", pageOf(state));
  }

  const rerollOrSay = (seed, push) => reroll(seed, push).catch(() => complain("seed", "No response from the server; still showing the previous seed."));

  /** plain reports whether a click opens the link in this page, not in a new tab. */
  const plain = (event) => event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);

  root.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || !plain(event)) return;
    if (link.classList.contains("cell")) {
      event.preventDefault();
      if (!link.hasAttribute("href")) return;
      show(Number(new URL(link.href).searchParams.get("index")), true);
    } else if (link.id === "reroll") {
      event.preventDefault();
      rerollOrSay((state.seed + 1) % maxSeed, true);
    } else if (link.id === "random") {
      event.preventDefault();
      show(Math.floor(Math.random() * data.len), true);
    } else if (link.id === "send-a" || link.id === "send-b") {
      remember(data.name, link.id.slice(-1), state.index);
    }
  });

  for (const { f, range, select } of rows) {
    range.addEventListener("input", () => pick(f, Number(range.value), false));
    range.addEventListener("change", () => pick(f, Number(range.value), true));
    select.addEventListener("change", () => pick(f, Number(select.value), true));
  }

  /** typed reads a field when its form is submitted or the field loses focus; invalid input stays as typed. */
  function typed(form, field, read, apply) {
    const take = () => {
      const { error, ...value } = read($(field).value);
      complain(field.slice(1), error ?? "");
      if (error) say(error);
      else apply(value);
    };
    $(form).addEventListener("submit", (event) => { event.preventDefault(); take(); });
    $(field).addEventListener("change", take);
  }
  const go = ({ index }) => { if (index !== state.index) show(index, true); };
  typed("#by-index", "#index", (text) => readIndex(text, data), go);
  typed("#by-tuple", "#tuple", (text) => readTuple(text, data), data.complete ? go : async ({ index }) => {
    const classes = classesOf(index, sizes);
    const found = await ask(`images.json?near=1&classes=${classes.join(".")}`);
    if (found?.error) complain("tuple", found.error);
    else if (found) settleOn(found, true);
  });
  typed("#by-seed", "#seed", readSeed, ({ seed }) => { if (seed !== state.seed) rerollOrSay(seed, true); });
  $("#by-factors")?.addEventListener("submit", (event) => event.preventDefault());

  addEventListener("popstate", () => {
    const q = new URL(location.href).searchParams;
    const { index = data.index } = q.has("index") || !data.complete ? readIndex(q.get("index") ?? "", data) : readTuple(q.getAll("f").join("."), data);
    const { seed = data.seed } = readSeed(q.get("grid") ?? "");
    show(index, false);
    if (seed !== state.seed) rerollOrSay(seed, false);
  });

  for (const row of rows) row.settle();
  settleGrid();
  if (data.valid) drawLinks();
}

const storage = "slotscope.pair";

/** remembered returns the pair last sent to the playground from this dataset in this tab: {a, b}, either may be missing. */
function remembered(dataset) {
  try {
    const pair = JSON.parse(sessionStorage.getItem(storage) ?? "{}");
    const { a, b } = pair.dataset === dataset ? pair : {};
    return { ...(Number.isInteger(a) && { a }), ...(Number.isInteger(b) && { b }) };
  } catch {
    return {};
  }
}

function remember(dataset, side, index) {
  try {
    sessionStorage.setItem(storage, JSON.stringify({ ...remembered(dataset), dataset, [side]: index }));
  } catch { /* without storage, the URL still carries the pair */ }
}

if (typeof document !== "undefined") {
  mount(document.getElementById("dataset"), JSON.parse(document.getElementById("dataset-data").textContent));
}
