/**
 * One field per question. The browser itself never sends the form, even if the script fails: its method is "dialog", and
 * no input has a name (except radio buttons, which are grouped by name and all have the value "on").
 *
 * A field has element, read() (the true answer), and problem(text) (show an error; "" clears it).
 */

import { wordsOf, word } from "./coding.js";
import { element, sentence } from "./elements.js";
import { commas, say } from "./text.js";

const FEW = 8; // values shown as radio buttons; more are shown as a list
const LONG = 2_000; // values up to which a list is shown; one of more is typed
const SHOWN = 50; // listed values that are suggested while one types
const MANY = 12; // items above which a search field is shown
export const PRIVATE = { autocomplete: "off", autocapitalize: "off", spellcheck: "false" }; // some spelling checkers send text to a server

/** The field of a question. */
export function fieldFor(name, question, operator) {
  const id = `question-${name}`;
  const { universe } = question;
  const kind = universe.span ? moment : universe.numeric ? number : universe.kind === "items" ? items : universe.kind === "text" ? words : category;
  const problem = element("p", { class: "problem", id: `${id}-problem`, hidden: true });
  const { inner, read, first } = kind(id, name, question);
  const how = randomizedBy(question, operator);
  const whole = element("div", { class: "question", "data-question": name }, inner, problem, how);
  return {
    element: whole,
    read,
    focus: () => first()?.focus(),
    problem: (text) => {
      problem.textContent = text;
      problem.hidden = !text;
      whole.classList.toggle("wrong", Boolean(text));
      for (const input of whole.querySelectorAll("input, select")) input.setAttribute("aria-invalid", String(Boolean(text)));
    },
  };
}

function number(id, name, question) {
  const { universe } = question;
  const keys = universe.kind === "integer" && universe.low.n >= 0n ? "numeric" : "decimal";
  const described = `${id}-hint ${id}-problem`;
  const input = element("input", { id, type: "text", inputmode: keys, "aria-describedby": described, ...PRIVATE });
  const empty = universe.missing === "lowest" ? " If you leave the field empty, the lowest number counts." : "";
  const other = universe.outside === "missing" ? "Numbers beyond these are not accepted." : "Any other number counts as the nearest of these.";
  return labeled(id, name, input, `One of ${universe.says}. ${other}${ranges(question)}${empty}`);
}

function labeled(id, name, input, hint) {
  const says = element("p", { class: "hint", id: `${id}-hint` }, hint);
  const inner = element("div", {}, element("label", { for: id }, name), says, input);
  return { inner, read: () => input.value.trim() || null, first: () => input };
}

function words(id, name, { parameters }) {
  const input = element("input", { id, type: "text", "aria-describedby": `${id}-hint ${id}-problem`, ...PRIVATE });
  const cut = parameters.hashed?.n ? "" : " Only the first 8 bytes are used: 8 letters, or fewer if they have accents.";
  return labeled(id, name, input, `Any text.${cut}`);
}

/** A date or time. The value of such an input is text without a time zone: the device's own zone plays no role. */
function moment(id, name, { universe }) {
  const { input: type, grid, says, outside, missing, content } = universe;
  const input = element("input", { id, type, "aria-describedby": `${id}-hint ${id}-problem`, ...PRIVATE });
  const coarse = { day: "", minute: "" }[grid] ?? ` Only the ${grid.replace("-minutes", " minutes")} that contains it counts.`;
  const clock = content.zone ? ` Write the time in ${content.zone}; of a time that occurs twice, the first counts.` : "";
  const beyond = outside === "clamp" ? " Anything else counts as the nearest of these." : "";
  const empty = missing === "lowest" ? " If you leave the field empty, the first counts." : "";
  return labeled(id, name, input, `One of ${says}.${coarse}${clock}${beyond}${empty}`);
}

function ranges(question) {
  const { starts, size } = question.universe;
  if (!starts) return "";
  const listed = Array.from({ length: Math.min(size, FEW) }, (_, code) => wordsOf(question, code)).join(", ");
  return ` Only the range of your number counts: ${listed}${size > FEW ? ", ..." : ""}.`;
}

/** "No answer" is offered if missing is a separate value. */
function category(id, name, { universe }) {
  const options = universe.values.map((value) => [word(value, universe), value]);
  if (universe.missing === "value") options.push(["no answer", null]);
  if (options.length <= FEW) return sideBySide(id, name, options);
  return options.length <= LONG ? fromList(id, name, options) : typed(id, name, options);
}

/** A value of a long list, typed as it is listed; those that contain the typed text are suggested. */
function typed(id, name, options) {
  const codes = new Map(options.map(([says, value]) => [says, value]));
  const { input, suggested } = suggestions(id, options.map(([says]) => says));
  const hint = `One of ${commas(options.length)} listed values. Type it exactly as it is listed.`;
  const { inner, first } = labeled(id, name, input, hint);
  inner.append(suggested);
  return { inner, read: () => codes.get(input.value.trim()), first };
}

/** An input, and the list of the texts that contain what is typed in it. */
export function suggestions(id, texts) {
  const suggested = element("datalist", { id: `${id}-suggested` });
  const described = `${id}-hint ${id}-problem`;
  const input = element("input", { id, type: "text", list: suggested.id, "aria-describedby": described, ...PRIVATE });
  input.addEventListener("input", () => {
    const matches = [];
    const part = input.value.trim();
    if (part) for (const text of texts) if (text.includes(part) && matches.push(text) === SHOWN) break;
    suggested.replaceChildren(...matches.map((text) => element("option", { value: text })));
  });
  return { input, suggested };
}

function sideBySide(id, name, options) {
  const { inputs, choices } = boxes(id, options.map(([says]) => says), { type: "radio", name: id });
  const list = element("div", { class: "choices" }, ...choices);
  const inner = element("fieldset", { "aria-describedby": `${id}-problem` }, element("legend", {}, name), list);
  const chosen = () => inputs.findIndex((input) => input.checked);
  return { inner, read: () => options[chosen()]?.[1], first: () => inputs[Math.max(0, chosen())] };
}

/** Checkboxes or radio buttons, each inside its label. */
export function boxes(id, words, kind) {
  const inputs = words.map((_, place) => element("input", { ...kind, id: `${id}-${place}`, autocomplete: "off" }));
  const label = (says, place) => element("label", { class: "choice" }, inputs[place], element("span", {}, says));
  return { inputs, choices: words.map(label) };
}

function fromList(id, name, options) {
  const list = options.map(([says], place) => element("option", { value: String(place) }, says));
  const none = element("option", { value: "" }, "Choose an answer");
  const select = element("select", { id, "aria-describedby": `${id}-problem`, autocomplete: "off" }, none, ...list);
  const inner = element("div", {}, element("label", { for: id }, name), select);
  const read = () => (select.value === "" ? undefined : options[Number(select.value)][1]);
  return { inner, read, first: () => select };
}

function items(id, name, { universe, parameters }) {
  const { inputs, choices } = boxes(id, universe.vocabulary, { type: "checkbox" });
  const count = element("p", { class: "hint" }, "No items selected. This is a valid answer.");
  const chosen = () => universe.vocabulary.filter((_, place) => inputs[place].checked);
  const list = element("div", { class: "choices many" }, ...choices);
  list.addEventListener("change", () => {
    count.textContent = `${commas(chosen().length)} of ${commas(inputs.length)} items selected.`;
  });
  const search = inputs.length > MANY ? [searchOf(`Search in ${name}`, universe.vocabulary, choices, "Search")] : [];
  const limit = parameters.choose ? [sentence(`Choose at most ${commas(parameters.choose.floor())}.`, "hint")] : [];
  const parts = [element("legend", {}, name), ...limit, ...search, list, count];
  const inner = element("fieldset", { "aria-describedby": `${id}-problem` }, ...parts);
  return { inner, read: chosen, first: () => inputs[0] };
}

/** A field that hides the choices whose text does not contain what is typed in it. */
export function searchOf(label, vocabulary, choices, placeholder = label) {
  const search = element("input", { type: "search", placeholder, "aria-label": label, ...PRIVATE });
  search.addEventListener("input", (event) => {
    event.stopPropagation(); // searching is not answering
    const wanted = search.value.trim().toLowerCase();
    choices.forEach((choice, place) => (choice.hidden = !vocabulary[place].toLowerCase().includes(wanted)));
  });
  return search;
}

/** How the answer is randomized, and what that promises; computed when it is opened. */
function randomizedBy(question, operator) {
  const told = element("details", { class: "how" }, element("summary", {}, "How this answer is randomized"));
  told.addEventListener("toggle", () => told.append(...promised(question, operator)), { once: true });
  return told;
}

function promised(question, operator) {
  const given = Object.entries(question.parameters).map(([name, value]) => `${name} ${say(value)}`);
  const plans = question.plans.length ? [`plans for ${question.plans.map((plan) => plan.size).join(", ")} items`] : [];
  const gamma = operator.lifetimeGamma();
  const most =
    gamma === null
      ? "The privacy loss is unlimited: some reports rule out some values completely."
      : `However often you answer with the same value, the odds about it change by at most a factor of ${say(gamma)}.`;
  return [sentence(`This page uses ${question.operator} with ${[...plans, ...given].join(" and ")}. ${most}`, "hint")];
}
