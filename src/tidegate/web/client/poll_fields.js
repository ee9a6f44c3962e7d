/**
 * One field per question of a poll, with its wording and labels. As in form_fields.js, the browser itself never sends an answer.
 *
 * A field has element, read() (the true answer), problem() (an error as text, "" if it is valid), show(text) and focus().
 */

import { codeOf } from "./coding.js";
import { element, sentence } from "./elements.js";
import { PRIVATE, boxes, searchOf, suggestions } from "./form_fields.js";
import { Refused } from "./refused.js";

const FEW = 8; // options shown as radio buttons; more are shown as a list
const LONG = 2_000; // options up to which a list is shown; one of more is typed
const MANY = 12; // options of a set above which a search field is shown

/** The field of a question; `parts` are shown below it. */
export function pollField(name, question, words, ...parts) {
  const id = `question-${name}`;
  const kind = question.universe.numeric ? number : (KINDS[question.universe.kind] ?? category);
  const { inner, read, first, problem } = kind({ id, name, question, words });
  const error = element("p", { class: "problem", id: `${id}-problem`, hidden: true });
  const whole = element("section", { class: "question", "data-question": name }, inner, error, ...parts);
  const showProblem = (text) => {
    error.textContent = text;
    error.hidden = !text;
    whole.classList.toggle("wrong", Boolean(text));
    for (const input of inner.querySelectorAll("input, select")) input.setAttribute("aria-invalid", String(Boolean(text)));
  };
  return { element: whole, read, problem, show: showProblem, focus: () => first().focus() };
}

const KINDS = { items: several, text: freeText };

/** The text of a question, in the language of the poll. */
const asked = ({ name, words }, tag, attributes = {}) => element(tag, { lang: words.language, ...attributes }, words.question(name));

function number({ id, name, question, words }) {
  const { universe } = question;
  const keys = universe.kind === "integer" && universe.low.n >= 0n ? "numeric" : "decimal";
  const input = element("input", { id, type: "text", inputmode: keys, "aria-describedby": `${id}-hint ${id}-problem`, ...PRIVATE });
  const ends = { low: words.number(universe.low), high: words.number(universe.high) };
  const key = universe.outside === "missing" ? "field.number.strict" : "field.number";
  const hint = element("p", { class: "hint", id: `${id}-hint` }, words.fill(key, { ...ends, step: words.number(universe.width) }));
  const inner = element("div", {}, asked({ name, words }, "label", { for: id }), hint, input);
  const read = () => plainNumber(input.value, words);
  const problem = () => {
    if (read() === null && universe.missing !== "lowest") return words.fill("field.number.required");
    const code = coded(question, read());
    if (code !== null) return "";
    return universe.position(read()) === null ? words.fill("field.number.required") : words.fill("field.number.outside", ends);
  };
  return { inner, read, problem, first: () => input };
}

/** A number as it is written in the reader's language: 1.234,5 or 1,234.5; null if the field is empty. */
function plainNumber(text, { texts }) {
  const plain = text.trim().replace(/[\s\u00a0\u202f]/g, "");
  if (!plain) return null;
  if (texts["number.decimal"] === ".") return plain.replace(/,(?=\d{3}(\D|$))/g, "");
  return plain.includes(",") ? plain.replaceAll(".", "").replace(",", ".") : plain;
}

function coded(question, answer) {
  try {
    return codeOf(question, answer);
  } catch (problem) {
    if (problem instanceof Refused) return null;
    throw problem;
  }
}

function freeText({ id, name, question, words }) {
  const input = element("input", { id, type: "text", "aria-describedby": `${id}-hint ${id}-problem`, ...PRIVATE });
  const hint = element("p", { class: "hint", id: `${id}-hint` }, words.fill("field.text"));
  const inner = element("div", {}, asked({ name, words }, "label", { for: id }), hint, input);
  const read = () => input.value.trim() || null;
  return { inner, read, problem: () => (coded(question, read()) === null ? words.fill("field.text.required") : ""), first: () => input };
}

/** One of several options. "No answer" is offered if missing is a separate value. */
function category({ id, name, question, words }) {
  const { universe } = question;
  const options = universe.values.map((value, code) => [words.label(name, question, code), value]);
  if (universe.missing === "value") options.push([words.fill("field.none"), null]);
  const kind = options.length <= FEW ? radios : options.length <= LONG ? selected : typed;
  const field = kind({ id, name, options, words });
  return { ...field, problem: () => (field.read() === undefined ? words.fill("field.required") : "") };
}

function radios({ id, name, options, words }) {
  const { inputs, choices } = boxes(id, options.map(([label]) => label), { type: "radio", name: id });
  const list = element("div", { class: "choices", lang: words.language }, ...choices);
  const inner = element("fieldset", { "aria-describedby": `${id}-problem` }, asked({ name, words }, "legend"), list);
  const chosen = () => inputs.findIndex((input) => input.checked);
  return { inner, read: () => options[chosen()]?.[1], first: () => inputs[Math.max(0, chosen())] };
}

function selected({ id, name, options, words }) {
  const list = options.map(([label], position) => element("option", { value: String(position) }, label));
  const none = element("option", { value: "" }, words.fill("field.choose"));
  const select = element("select", { id, "aria-describedby": `${id}-problem`, autocomplete: "off" }, none, ...list);
  const inner = element("div", {}, asked({ name, words }, "label", { for: id }), select);
  return { inner, read: () => (select.value === "" ? undefined : options[Number(select.value)][1]), first: () => select };
}

/** A value of a long list, typed as it is listed. */
function typed({ id, name, options, words }) {
  const { input, suggested } = suggestions(id, options.map(([label]) => label));
  const byLabel = new Map(options);
  const hint = element("p", { class: "hint", id: `${id}-hint` }, words.fill("field.typed", { n: words.whole(options.length) }));
  const inner = element("div", {}, asked({ name, words }, "label", { for: id }), hint, input, suggested);
  return { inner, read: () => byLabel.get(input.value.trim()), first: () => input };
}

/** Any number of options, or at most some. */
function several({ id, name, question, words }) {
  const { vocabulary } = question.universe;
  const most = question.parameters.choose?.floor();
  const labels = vocabulary.map((_, code) => words.label(name, question, code));
  const { inputs, choices } = boxes(id, labels, { type: "checkbox" });
  const chosen = () => vocabulary.filter((_, position) => inputs[position].checked);
  const said = () => words.fill("field.count", { n: words.whole(chosen().length), total: words.whole(vocabulary.length) });
  const count = element("p", { class: "hint", role: "status" }, said());
  const list = element("div", { class: "choices many", lang: words.language }, ...choices);
  list.addEventListener("change", () => (count.textContent = said()));
  const hint = sentence(most ? words.fill("field.at_most", { n: words.whole(most) }) : words.fill("field.any"), "hint");
  hint.id = `${id}-hint`;
  const search = labels.length > MANY ? [searchOf(words.fill("field.search"), labels, choices)] : [];
  const described = { "aria-describedby": `${id}-hint ${id}-problem` };
  const inner = element("fieldset", described, asked({ name, words }, "legend"), hint, ...search, list, count);
  const problem = () => {
    if (!most || chosen().length <= most) return "";
    return words.fill("field.too_many", { n: words.whole(most), chosen: words.whole(chosen().length) });
  };
  return { inner, read: chosen, problem, first: () => inputs[0] };
}
