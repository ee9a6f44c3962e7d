// A new collection: its attribute, the operators that meet a privacy requirement, the section of the policy, and its creation.

import { pageOf } from "./address.js";
import { showCode } from "./code.js";
import { presets } from "./collect_baskets.js";
import { element, number } from "./elements.js";
import { aboveZero, fieldError } from "./field_errors.js";
import { timed } from "./live.js";
import { post, quietly, tell, view } from "./api.js";

const { at: place, attributes } = view(), MOST_VALUES = 200;
const at = (id) => document.getElementById(id);
const chosen = new Map(); // questions by name
let drafted = null; // the draft on the screen, which can be created
let latest = 0;

const attribute = () => attributes.find((one) => one.attribute === at("attribute").value);
const measure = () => document.querySelector('input[name="measure"]:checked').value;

// The privacy requirement

function showWishes() {
  const about = attribute();
  at("wishes").hidden = about.kind === "items";
  document.querySelector('[data-for="ordered"]').hidden = !about.ordered;
  if (!about.ordered && measure() === "interval") document.querySelector('input[value="epsilon"]').checked = true;
  for (const one of document.querySelectorAll("[data-wish]")) one.hidden = one.dataset.wish !== measure();
}

function wish() {
  const about = attribute(), value = (id) => Number(at(id).value);
  const requirement = measure() === "breach" ? { breach: [value("before"), value("after")] } : { [measure()]: value(measure()) };
  return { values: about.values, categories: !about.ordered, clients: value("clients"), ...requirement };
}

/** Whether the visible numbers are above 0; other fields show an error. */
function valid() {
  const fields = [...document.querySelectorAll("#wishes:not([hidden]) [data-wish] input")].map((input) => [input, input.closest("[data-wish]").hidden ? null : aboveZero(input)]);
  fields.push([at("clients"), aboveZero(at("clients"))]);
  for (const [input, text] of fields) fieldError(input, text);
  return fields.every(([, text]) => !text);
}

async function advise(event) {
  event.preventDefault();
  if (!valid()) return null;
  const about = attribute(), buttons = event.target.querySelectorAll("button");
  if (about.kind !== "items" && about.values > MOST_VALUES)
    return tell({ what: `The adviser supports up to ${MOST_VALUES} values, but ${about.attribute} has ${number(about.values)}.`, do: "Declare bins or a coarser grid for the attribute in the policy, or write the section yourself." });
  const work = about.kind === "items" ? () => presets(about) : () => quietly("POST", "/v1/risk/advice", wish());
  const { value, error } = await timed(at("advising"), "Measuring operators", work, buttons);
  tell(error);
  if (value) showOptions(about, value);
  return null;
}

// Comparison of operators

const share = (value) => (value === null || value === undefined ? "" : `${number(100 * value, 3)}%`);

function row(about, option) {
  const measures = option.measures;
  const parameter = Object.entries(option.parameters).map(([name, value]) => `${name} ${number(value)}`).join(", ");
  if (!measures) return [option.operator, parameter, option.why_not, "", "", "", ""];
  const error = option.error_95 === null ? "" : about.ordered ? `mean ± ${number(option.error_95, 3)} steps` : `share ± ${number(100 * option.error_95, 3)} points`;
  const limit = measures.epsilon === "unlimited" ? "unlimited" : number(measures.epsilon);
  return [option.operator, parameter, limit, share(measures.interval?.privacy), share(measures.breach.to_for_any_prior), share(measures.entropy?.loss), error];
}

function showOptions(about, advice) {
  at("advice").textContent = advice.says;
  const headers = ["", "operator", "parameter", "epsilon", "interval / range", "5% can become", "entropy loss", "error, 95%"];
  const rows = advice.options.map((option, place) => {
    const take = option.measures ? element("button", { type: "button", class: place ? "second-choice" : null }, "Select") : "";
    if (take) take.setAttribute("aria-label", `Select ${option.operator} for ${about.attribute}`);
    if (take) take.addEventListener("click", () => choose(about, option));
    return element("tr", {}, element("td", {}, take), ...row(about, option).map((cell) => element("td", {}, cell)));
  });
  at("options").replaceChildren(element("thead", {}, element("tr", {}, ...headers.map((name) => element("th", { scope: "col" }, name)))), element("tbody", {}, ...rows));
}

// The selected questions

function nameFor(about) {
  const name = about.attribute.replaceAll(/[^A-Za-z0-9_-]/g, "_").replace(/^[^A-Za-z]+/, "");
  return (name || "question").slice(0, 63);
}

/** The parameter as exact text from the policy; a JavaScript number can be slightly larger. */
function exactly(option) {
  const [, name, value] = option.policy?.match(/, (\w+) = "?([0-9./]+)"?$/) ?? [];
  return name ? { [name]: value } : option.parameters;
}

function choose(about, option) {
  chosen.set(nameFor(about), { attribute: about.attribute, operator: option.operator, ...exactly(option) });
  at("make").hidden = false;
  at("name").value ||= "visitors";
  draft();
  at("name").focus();
}

function listed() {
  return [...chosen].map(([name, question]) => {
    const parameters = Object.entries(question).filter(([key]) => !["attribute", "operator"].includes(key)).map(([key, value]) => `${key} ${value}`);
    const gone = element("button", { type: "button", class: "plain", "aria-label": `Remove ${name}` }, "Remove");
    gone.addEventListener("click", () => { chosen.delete(name); draft(); });
    return element("li", {}, `${name} by ${question.operator}, ${parameters.join(", ")} `, gone);
  });
}

const requestBody = () => ({ collection: at("name").value.trim(), questions: Object.fromEntries(chosen), repeats: at("repeats").value, clients: Number(at("clients").value) });

/** Only a drafted collection can be created: while a draft is loading, the button is disabled. */
async function draft() {
  const turn = ++latest;
  drafted = null;
  at("make-it").disabled = true;
  at("questions").replaceChildren(...listed());
  at("make").hidden = chosen.size === 0;
  const named = at("name").checkValidity();
  fieldError(at("name"), named ? null : "Enter a letter, then letters, digits, _ or -.");
  if (!valid() || !chosen.size || !named) return;
  const body = requestBody();
  const { value, error } = await quietly("POST", `${place}/drafts`, body);
  if (turn !== latest) return;
  tell(error);
  if (!value) return;
  at("section").textContent = value.section;
  at("gives").textContent = `${value.says.charAt(0).toUpperCase()}${value.says.slice(1)}.`;
  showCode(value.codes);
  drafted = body;
  at("make-it").disabled = false;
}

async function make() {
  if (!drafted) return;
  at("make-it").disabled = true;
  const created = await post(place, drafted);
  if (created) location.assign(pageOf(`${place}/${created.collection}`));
  else at("make-it").disabled = !drafted;
}

if (at("advise")) {
  at("advise").addEventListener("submit", advise);
  at("advise").addEventListener("change", showWishes);
  at("make").addEventListener("submit", (event) => event.preventDefault()); // Enter in a field creates nothing
  at("make-it").addEventListener("click", make);
  at("make").addEventListener("input", draft);
  at("clients").addEventListener("input", draft);
  showWishes();
}
