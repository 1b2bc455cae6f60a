// The progress of a report download.

const every = 500; // milliseconds between two requests

/** follow shows the progress of the named download in line until it ends. */
export async function follow(line, name) {
  for (let looks = 0; ; looks++) {
    const answer = await fetch(`/api/report/progress/${name}`).catch(() => null);
    const now = answer?.ok ? await answer.json().catch(() => null) : null;
    if (now) line.textContent = sentence(now);
    else if (looks > 20) return; // the download never started or was refused; the browser shows the reason
    if (now?.ended) return;
    await new Promise((then) => setTimeout(then, every));
  }
}

/** sentence describes the progress of a download. */
export function sentence({ name, file, number, of, share, ended, failed }) {
  if (failed) return `${name} was not completed. Download it again.`;
  if (ended) return `${name} is complete.`;
  if (!file) return `Preparing ${name}…`;
  const place = of > 1 ? ` (file ${number} of ${of})` : '';
  return `Writing ${file}${place}${share > 0 ? `: ${Math.floor(100 * share)}% of its points` : ''}…`;
}
