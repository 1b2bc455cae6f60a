// User-chosen names in a frozen page, stored in the browser because there is no run folder.

const entry = (key) => `slotscope names ${key}`;

/** load returns the names of a model, {slots, groups, codes, pins}; empty if storage is unavailable or its content is invalid. */
export function load(key) {
  try {
    const { slots = {}, groups = {}, codes = {}, pins = {} } = JSON.parse(localStorage.getItem(entry(key)) ?? '{}');
    return { slots, groups, codes, pins };
  } catch {
    return { slots: {}, groups: {}, codes: {}, pins: {} };
  }
}

/** save stores names, or throws an error to show. */
export function save(key, names) {
  try {
    localStorage.setItem(entry(key), JSON.stringify(names));
  } catch {
    throw new Error('This browser does not allow files to store names.');
  }
}

/** changed returns names with one change, {slot, code, factor, name, pin}, like the server's. */
export function changed(names, { slot, code, factor, name, pin }) {
  const out = structuredClone(names);
  if (factor !== undefined) out.groups[factor] = name;
  else if (name !== undefined && code === undefined) out.slots[slot] = name;
  else if (name !== undefined) out.codes[slot] = { ...out.codes[slot], [code]: name };
  if (pin !== undefined) out.pins[slot] = { ...out.pins[slot], [code]: pin };
  return out;
}

/** applied returns slots and groups with the stored names; an empty name removes the file's own. */
export function applied({ slots, groups }, names) {
  const renamed = slots.map((s) => {
    const codes = s.codes.map((c) => call(c, names.codes[s.index]?.[c.code]));
    for (const [code, name] of Object.entries(names.codes[s.index] ?? {})) {
      if (name && !codes.some((c) => c.code === Number(code))) codes.push({ code: Number(code), name, told: code, classes: [] });
    }
    const pins = Object.entries(names.pins[s.index] ?? {});
    const kept = s.pins.filter((code) => names.pins[s.index]?.[code] !== false);
    return { ...s, called: names.slots[s.index] ?? s.called, codes, pins: [...new Set([...kept, ...pins.flatMap(([code, on]) => (on ? [Number(code)] : []))])] };
  });
  return { slots: renamed, groups: groups.map((g) => ({ ...g, called: g.key ? names.groups[g.key] ?? g.called : renamed[g.slots[0]].called })) };
}

function call(code, name) {
  if (name === undefined) return code;
  const told = code.told ?? code.name;
  return name ? { ...code, name, told } : { ...code, name: told, told: undefined };
}
