// Browser notifications: enabled on a run page, shown for every alert of the runs whose pages are open.
const key = 'slotscope-notify';

/** wanted reports whether notifications are enabled in this browser. */
export const wanted = () => localStorage.getItem(key) === 'yes';

/** blocked returns why the browser cannot show notifications; '' if it can, or can after permission is given. */
export function blocked(env = globalThis) {
  if (!('Notification' in env)) return env.isSecureContext === false ? 'Notifications need HTTPS, or a server on localhost.' : 'This browser does not support notifications.';
  if (env.Notification.permission === 'denied') return 'This browser blocks notifications from this site; allow them in the site’s settings.';
  return '';
}

/** title returns the title of a notification. */
export function title(alert) {
  return `${alert.name}: ${{ rule: 'rule holds' }[alert.kind] ?? alert.kind}`;
}

/** Notifier controls the notification switch of a page. */
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
    this.why.textContent = blocked() || 'Permission was not given; switch on again to retry.';
  }

  /** show notifies about an alert once, even if several pages of the run are open. */
  show(alert) {
    if (!this.switch.checked) return;
    try {
      const shown = new Notification(title(alert), { body: alert.text, tag: `slotscope-${alert.id}` });
      shown.onclick = () => (window.focus(), shown.close());
    } catch {
      this.why.textContent = 'This browser shows notifications only for installed apps.';
    }
  }
}
