// Fetches every library of static/vendor/manifest.json from npm and stops if a file does not match the manifest.
//
//   node tools/vendor.mjs            check and write
//   node tools/vendor.mjs --accept   accept the fetched files and write their hashes to the manifest, after changing a version there
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const vendor = fileURLToPath(new URL('../static/vendor/', import.meta.url));
const manifest = join(vendor, 'manifest.json');
const accept = process.argv.includes('--accept');

const libraries = JSON.parse(readFileSync(manifest, 'utf8'));
for (const library of libraries) {
  const folder = fetchPackage(`${library.name}@${library.version}`);
  for (const file of Object.keys(library.sha256)) take(library, file, find(folder, basename(file)));
  rmSync(folder, { recursive: true });
}
if (accept) writeFileSync(manifest, JSON.stringify(libraries, null, 2) + '\n');

// fetchPackage unpacks an npm package into a new folder.
function fetchPackage(name) {
  const folder = mkdtempSync(join(tmpdir(), 'vendor-'));
  const archive = execFileSync('npm', ['pack', '--silent', '--pack-destination', folder, name], { encoding: 'utf8' }).trim();
  execFileSync('tar', ['-xzf', join(folder, archive), '-C', folder]);
  return folder;
}

// find returns the shallowest file of that name.
function find(folder, name) {
  const found = readdirSync(folder, { recursive: true }).filter((path) => basename(path) === name);
  if (found.length === 0) throw new Error(`the package has no ${name}`);
  return join(folder, found.sort((a, b) => a.split('/').length - b.split('/').length)[0]);
}

// take writes one fetched file if it matches the manifest.
function take(library, file, from) {
  const bytes = readFileSync(from);
  const hash = createHash('sha256').update(bytes).digest('hex');
  if (accept) library.sha256[file] = hash;
  if (hash !== library.sha256[file]) throw new Error(`${file} of ${library.name}@${library.version} has sha256 ${hash}, not ${library.sha256[file]}`);
  mkdirSync(dirname(join(vendor, file)), { recursive: true });
  writeFileSync(join(vendor, file), bytes);
  console.log(`${library.name}@${library.version} ${file} ${hash.slice(0, 12)}`);
}
