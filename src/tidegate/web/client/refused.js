/**
 * An error: what happened and what to do. It never quotes a person's answer.
 *
 * `text` is { key, values } for a form with texts in several languages: its text is "refused.KEY".
 */
export class Refused extends Error {
  constructor(what, next = "", text = null) {
    super(what);
    this.name = "Refused";
    this.what = what;
    this.next = next;
    this.text = text;
  }
}
