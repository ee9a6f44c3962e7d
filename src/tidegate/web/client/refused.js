/** What cannot be done: what happened, and what to do about it. Never quotes a person's answer. */
export class Refused extends Error {
  constructor(what, next = "") {
    super(what);
    this.name = "Refused";
    this.what = what;
    this.next = next;
  }
}
