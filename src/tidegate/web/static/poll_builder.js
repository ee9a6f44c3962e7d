// The builder of a poll: the draft as fields, its expected error and texts from the service, and its opening.

import { pageOf } from "./address.js";
import { quietly, tell, view } from "./api.js";
import { showCode } from "./code.js";
import { element } from "./elements.js";
import { timed } from "./live.js";
import { bodyOf, emptyDraft, emptyQuestion, forgetDraft, loadDraft, put, saveDraft, at as valueAt } from "./poll_draft.js";
import { moveSlider, showLevel } from "./poll_level.js";
import { change, idOf, showQuestions, titled } from "./poll_questions.js";
import { untilThen, withZone, zones } from "./poll_time.js";
import { showWording } from "./poll_wording.js";

const page = view(), at = (id) => document.getElementById(id);
const draftKey = `new poll of ${page.dataset}`, PAUSE = 350; // milliseconds after the last change
const names = Object.fromEntries(page.languages.map(({ code, name }) => [code, name]));
let draft = loadDraft(draftKey, emptyDraft(page, zones()[0]));
let ready = null; // the body on the screen, which can be opened
let latest = 0, timer = null;

// Fields

function showFields() {
  for (const input of document.querySelectorAll("#builder [data-path]")) {
    const value = valueAt(draft, input.dataset.path);
    if (input.type === "radio") input.checked = input.value === value;
    else if (input.type === "checkbox") input.checked = Boolean(value);
    else input.value = value ?? "";
  }
}

function showLanguages() {
  const tag = (code) => {
    const gone = element("button", { type: "button", class: "plain", "aria-label": `Remove ${names[code] ?? code}` }, "Remove");
    gone.addEventListener("click", () => { draft.languages = draft.languages.filter((other) => other !== code); structure("add-language"); });
    return element("li", {}, names[code] ?? code, draft.languages.length > 1 ? gone : "");
  };
  at("languages").replaceChildren(...draft.languages.map(tag));
  const others = page.languages.filter(({ code }) => !draft.languages.includes(code));
  at("add-language").replaceChildren(element("option", { value: "" }, "Add a language ..."), ...others.map(({ code, name, has_form }) => element("option", { value: code }, has_form ? name : `${name} (form texts in English)`)));
  at("about-texts").replaceChildren(titled(draft, "title", "Title", names), titled(draft, "purpose", "Purpose", names, "what the results are used for"));
}

function showAsk() {
  const count = draft.questions.length, isTotal = draft.privacy === "epsilon";
  const numbers = Array.from({ length: Math.max(0, count - 1) }, (_, index) => String(index + 1));
  const choices = [...(isTotal ? [["best", "best: the number with the smallest error"]] : []), ["all", `all ${count}`], ...numbers.map((value) => [value, `${value} of ${count}`])];
  if (!choices.some(([value]) => value === draft.ask)) draft.ask = choices[0][0];
  at("ask").replaceChildren(...choices.map(([value, label]) => element("option", { value }, label)));
  at("ask").value = draft.ask;
  at("per-person").hidden = count < 2;
}

function showDependent() {
  const canBeRandom = draft.questions.every((question) => question.kind === "choice");
  if (!canBeRandom) draft.privacy = "epsilon";
  document.querySelector('[name="privacy"][value="random"]').disabled = !canBeRandom;
  at("random-hint").hidden = canBeRandom;
  at("open-warning").hidden = draft.access !== "open";
  const closes = withZone(draft.closes, draft.zone);
  at("closes-in").textContent = !closes ? "" : Date.parse(closes) <= Date.now() ? "This time has passed." : `Open for ${untilThen(closes)} from now. Later reports are refused.`;
  at("name").placeholder = bodyOf({ ...draft, name: "" }).body.poll;
  showAsk();
}

/** Show everything again after languages or questions changed; then the focus moves to a field. */
function structure(next = null) {
  showLanguages();
  showQuestions(at("questions"), draft, names);
  showFields();
  changed();
  if (next) at(next)?.focus();
}

// The draft at the service

function changed() {
  saveDraft(draftKey, draft);
  showDependent();
  document.querySelector(`[name="privacy"][value="${draft.privacy}"]`).checked = true;
  ready = null;
  at("open").disabled = true;
  clearTimeout(timer);
  timer = setTimeout(ask, PAUSE);
}

function showMissing(missing) {
  at("missing").hidden = !missing.length;
  const links = missing.map(([path, text]) => element("li", {}, element("a", { href: `#${idOf(path)}` }, text)));
  at("missing").querySelector("ul").replaceChildren(...links);
}

async function ask() {
  const turn = ++latest, { body, missing } = bodyOf(draft, page.taken);
  showMissing(missing);
  at("builder").classList.toggle("incomplete", missing.length > 0);
  if (missing.length) return showDraft(null);
  const { value, error } = await quietly("POST", `${page.at}/drafts`, body);
  if (turn !== latest) return null;
  return showDraft(value ?? null, error, body);
}

function showDraft(value, error = null, body = null) {
  const problem = error ?? value?.problem ?? null;
  at("refused").hidden = !problem;
  at("refused").replaceChildren(...(problem ? [problem.what, problem.do?.replace("write accept_error = true", "accept it in step 4")].filter(Boolean).map((text) => element("p", {}, text)) : []));
  at("wording-empty").hidden = Boolean(value);
  showWording(at("wording"), value?.reads ?? [], names);
  at("ready").hidden = !value;
  at("section").textContent = value?.section ?? "";
  if (value) showCode(value.codes);
  const moved = showLevel(value, draft);
  ready = value && !problem && !moved ? body : null;
  at("open").disabled = !ready;
  if (moved) { saveDraft(draftKey, draft); changed(); } // the wished error needs another setting
}

async function open() {
  if (!ready) return;
  const { value, error } = await timed(at("opening"), "Opening the poll", () => quietly("POST", page.at, ready), [at("open")]);
  tell(error);
  if (!value) return;
  forgetDraft(draftKey);
  location.assign(pageOf(`${page.at}/${value.poll}/share`));
}

// Events

at("builder").addEventListener("submit", (event) => event.preventDefault()); // Enter in a field opens nothing
at("builder").addEventListener("input", (event) => {
  const { path } = event.target.dataset;
  if (!path) return;
  put(draft, path, event.target.type === "checkbox" ? event.target.checked : event.target.value);
  if (/^questions\.\d+\.kind$/.test(path)) {
    const question = draft.questions[Number(path.split(".")[1])];
    if (question.kind !== "number" && question.options.length < 2) question.options = [{}, {}];
    structure(idOf(path));
  } else changed();
});
at("builder").addEventListener("click", (event) => {
  const button = event.target.closest("button[data-action], button[data-add]");
  if (button?.dataset.action) structure(idOf(change(draft, button.dataset.action, button.dataset.of)));
  if (button?.dataset.add) {
    draft.questions.push(emptyQuestion(button.dataset.add));
    structure(idOf(`questions.${draft.questions.length - 1}.text.${draft.languages[0]}`));
  }
});
at("missing").addEventListener("click", (event) => {
  const target = event.target.closest("a")?.hash.slice(1);
  if (target && at(target)) { event.preventDefault(); at(target).closest("details")?.setAttribute("open", ""); at(target).focus(); }
});
at("add-language").addEventListener("change", () => {
  if (at("add-language").value) draft.languages = [...draft.languages, at("add-language").value];
  structure("add-language");
});
at("slider").addEventListener("input", () => { moveSlider(draft); changed(); });
at("open").addEventListener("click", open);
at("discard").addEventListener("click", () => { forgetDraft(draftKey); draft = emptyDraft(page, zones()[0]); structure("holder"); });
at("zone").replaceChildren(...zones().map((zone) => element("option", { value: zone }, zone.replaceAll("_", " "))));
structure();
at("builder").hidden = false;
