// Undo and redo: a list of small states, the present one among them. An edit after an undo drops what could have been redone.

export const DEPTH = 200;

export class History {
  constructor(present, past = [], future = []) {
    Object.assign(this, { present, past, future });
  }

  get canUndo() { return this.past.length > 0; }
  get canRedo() { return this.future.length > 0; }

  push(state) {
    this.past.push(this.present);
    if (this.past.length > DEPTH) this.past.shift();
    this.present = state;
    this.future = [];
  }

  undo() {
    if (!this.canUndo) return null;
    this.future.push(this.present);
    return (this.present = this.past.pop());
  }

  redo() {
    if (!this.canRedo) return null;
    this.past.push(this.present);
    return (this.present = this.future.pop());
  }

  /** states are all that can be shown again. */
  states() { return [this.present, ...this.past, ...this.future]; }

  /** toJSON is what history.state keeps, so that a reload loses nothing. */
  toJSON() { return { present: this.present, past: this.past, future: this.future }; }

  /** restore takes what toJSON gave where its present state is the one that the address shows. */
  static restore(saved, present, equal) {
    const fits = saved && Array.isArray(saved.past) && Array.isArray(saved.future) && saved.present && equal(saved.present, present);
    return fits ? new History(saved.present, saved.past, saved.future) : new History(present);
  }
}
