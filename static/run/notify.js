// Notifications of this browser: asked for on the page of a run, shown for every alert of the runs whose pages are open.
const key = 'slotscope-notify';

/** wanted says whether this browser was asked to notify. */
export const wanted = () => localStorage.getItem(key) === 'yes';

/** blocked is why the browser shows no notifications; '' where it does, or would once it is permitted. */
export function blocked(env = globalThis) {
  if (!('Notification' in env)) return env.isSecureContext === false ? 'Notifications need HTTPS, or a server on localhost.' : 'This browser has no notifications.';
  if (env.Notification.permission === 'denied') return 'This browser blocks notifications of this site; allow them in the site’s settings.';
  return '';
}

/** title is the first line of a notification. */
export function title(alert) {
  return `${alert.name}: ${{ rule: 'rule holds' }[alert.kind] ?? alert.kind}`;
}

/** Notifier owns the switch of a page. */
export class Notifier {
  constructor(box) {
    this.switch = box.querySelector('input');
    this.why = box.querySelector('[data-part="notify-why"]');
    this.switch.checked = wanted() && !blocked() && Notification.permission === 'granted';
    this.switch.onchange = () => this.#ask();
    if (wanted()) this.why.textContent = blocked();
  }

  async #ask() {
    const on = this.switch.checked;
    localStorage.removeItem(key);
    this.why.textContent = on ? blocked() : '';
    if (!on) return;
    if (!blocked() && (await Notification.requestPermission()) === 'granted') {
      localStorage.setItem(key, 'yes');
      return;
    }
    this.switch.checked = false;
    this.why.textContent = blocked() || 'The browser was not permitted to notify; switch on again to be asked once more.';
  }

  /** show tells of an alert; several pages of one run show it once. */
  show(alert) {
    if (!this.switch.checked) return;
    try {
      const shown = new Notification(title(alert), { body: alert.text, tag: `slotscope-${alert.id}` });
      shown.onclick = () => (window.focus(), shown.close());
    } catch {
      this.why.textContent = 'This browser shows notifications to installed apps alone.';
    }
  }
}
