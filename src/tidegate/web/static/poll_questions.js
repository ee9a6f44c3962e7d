// The questions of a new poll as fields. Every field has its path in the draft.

import { element } from "./elements.js";
import { at } from "./poll_draft.js";

const KINDS = { choice: "One answer", some: "Up to several answers", any: "Any number of answers", number: "A number" };

/** The id of the field of a path. */
export const idOf = (path) => path.replaceAll(".", "-");

function field(path, label, input) {
  input.id = idOf(path);
  input.dataset.path = path;
  return element("div", { class: "field" }, element("label", { for: input.id }, label), input);
}

/** A text in every language: one field each, side by side. */
export function texts(draft, path, label, names, more = {}) {
  const several = draft.languages.length > 1;
  const fields = draft.languages.map((code) => {
    const input = element("input", { type: "text", maxlength: 1000, lang: code, "aria-label": several ? `${label}, ${names[code] ?? code}` : label, ...more });
    input.value = at(draft, `${path}.${code}`) ?? "";
    input.id = idOf(`${path}.${code}`);
    input.dataset.path = `${path}.${code}`;
    return several ? element("div", {}, element("label", { for: input.id }, names[code] ?? code), input) : input;
  });
  return element("div", { class: "by-language" }, ...fields);
}

export function titled(draft, path, label, names, hint = "") {
  return element("div", { class: "field" }, element("p", { class: "label" }, label, hint ? element("span", { class: "quiet" }, ` ${hint}`) : ""), texts(draft, path, label, names));
}

const button = (action, path, text, label = null) => element("button", { type: "button", class: "plain", "data-action": action, "data-of": path, "aria-label": label }, text);

function option(draft, path, index, names) {
  const number = index + 1, own = `${path}.options.${index}`;
  return element("div", { class: "option" }, texts(draft, own, `Option ${number}`, names, { placeholder: `Option ${number}` }), button("remove-option", own, "Remove", `Remove option ${number}`));
}

function numberInput(draft, path, more = {}) {
  const input = element("input", { type: "number", step: "any", ...more });
  input.value = at(draft, path);
  return input;
}

function details(draft, question, path) {
  const own = [];
  if (question.kind === "some") own.push(field(`${path}.choose`, "At most this number of answers", numberInput(draft, `${path}.choose`, { min: 1, step: 1 })));
  if (question.kind === "choice") {
    const box = element("input", { type: "checkbox", id: idOf(`${path}.skip`), "data-path": `${path}.skip` });
    box.checked = question.skip;
    own.push(element("label", { class: "choice" }, box, " can be skipped"));
  }
  if (question.kind === "number") {
    own.push(element("div", { class: "row" }, ...[["from", "From"], ["to", "To"], ["step", "In steps of"]].map(([key, label]) => field(`${path}.${key}`, label, numberInput(draft, `${path}.${key}`)))));
    const want = element("select", {}, element("option", { value: "distribution" }, "the whole distribution"), element("option", { value: "mean" }, "only the mean (smaller error)"));
    want.value = question.want;
    own.push(field(`${path}.want`, "Result", want));
  }
  return own;
}

function questionBox(draft, question, index, names) {
  const path = `questions.${index}`, number = index + 1;
  const kind = element("select", {}, ...Object.entries(KINDS).map(([value, label]) => element("option", { value }, label)));
  kind.value = question.kind;
  const tools = [
    index > 0 ? button("up", path, "Move up", `Move question ${number} up`) : "",
    index + 1 < draft.questions.length ? button("down", path, "Move down", `Move question ${number} down`) : "",
    draft.questions.length > 1 ? button("remove", path, "Remove", `Remove question ${number}`) : "",
  ];
  const name = element("input", { type: "text", maxlength: 63, spellcheck: "false", placeholder: "made from the text" });
  name.value = question.name;
  const options = question.options.map((_, position) => option(draft, path, position, names));
  const add = button("add-option", path, "Add an option", `Add an option to question ${number}`);
  add.id = idOf(`${path}.add`);
  return element(
    "section", { class: "question", "aria-label": `Question ${number}` },
    element("div", { class: "bar" }, element("h3", {}, `Question ${number}`), element("div", { class: "tools" }, ...tools)),
    field(`${path}.kind`, "Kind of answer", kind),
    titled(draft, `${path}.text`, `Text of question ${number}`, names),
    ...(question.kind === "number" ? [] : [element("div", { class: "field", role: "group", "aria-label": `Options of question ${number}` }, element("p", { class: "label" }, "Options"), ...options, add)]),
    ...details(draft, question, path),
    element("details", {}, element("summary", {}, "Name in tables"), field(`${path}.name`, "Short name", name)),
  );
}

/** Show all questions; fields of an earlier draft are replaced. */
export function showQuestions(target, draft, names) {
  target.replaceChildren(...draft.questions.map((question, index) => questionBox(draft, question, index, names)));
}

/** Change the list of questions or options as a button says; return the path of the field that is next. */
export function change(draft, action, path) {
  const [, position, , option] = path.split("."), index = Number(position), list = draft.questions;
  if (action === "remove") list.splice(index, 1);
  if (action === "up" || action === "down") {
    const other = index + (action === "up" ? -1 : 1);
    [list[index], list[other]] = [list[other], list[index]];
    return `questions.${other}.text.${draft.languages[0]}`;
  }
  if (action === "add-option") {
    list[index].options.push({});
    return `questions.${index}.options.${list[index].options.length - 1}.${draft.languages[0]}`;
  }
  if (action === "remove-option") {
    list[index].options.splice(Number(option), 1);
    return `questions.${index}.add`;
  }
  return `questions.${Math.max(0, index - 1)}.text.${draft.languages[0]}`;
}
