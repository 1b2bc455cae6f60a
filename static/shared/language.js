// Some browsers report a language that is not a valid tag, e.g. "C". uPlot passes it to Intl, which throws and leaves charts blank.
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en-US', configurable: true });
}
