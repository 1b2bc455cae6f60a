// Undo and redo: a list of small states, including the present one. An edit after an undo clears the redo states.

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

  /** states returns all states. */
  states() { return [this.present, ...this.past, ...this.future]; }

  /** toJSON returns what is stored in history.state, so that a reload loses nothing. */
  toJSON() { return { present: this.present, past: this.past, future: this.future }; }

  /** restore returns the saved history if its present state is that of the URL, otherwise a new one. */
  static restore(saved, present, equal) {
    const fits = saved && Array.isArray(saved.past) && Array.isArray(saved.future) && saved.present && equal(saved.present, present);
    return fits ? new History(saved.present, saved.past, saved.future) : new History(present);
  }
}
