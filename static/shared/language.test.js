import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { createContext, runInContext } from 'node:vm';

const script = readFileSync(new URL('language.js', import.meta.url), 'utf8');

/** languageAfter returns the language that the browser reports after the script has run. */
function languageAfter(reported) {
  class Navigator {
    get language() {
      return reported;
    }
  }
  const context = createContext({ navigator: new Navigator() });
  runInContext(script, context);
  return runInContext('navigator.language', context);
}

test('a language that Intl rejects is replaced, others are kept', () => {
  assert.equal(languageAfter('C'), 'en-US');
  assert.equal(languageAfter('en_US.UTF-8'), 'en-US');
  assert.equal(languageAfter('de-CH'), 'de-CH');
  assert.equal(languageAfter('en-US'), 'en-US');
});
