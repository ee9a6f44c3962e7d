/** An error: what happened and what to do. It never quotes a person's answer. */
export class Refused extends Error {
  constructor(what, next = "") {
    super(what);
    this.name = "Refused";
    this.what = what;
    this.next = next;
  }
}
