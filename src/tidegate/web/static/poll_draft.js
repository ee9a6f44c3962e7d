// The draft of a poll: a plain value that stays in this tab, and the body of a request that it becomes.

import { someDaysLater, withZone } from "./poll_time.js";

const DAYS = 14; // a new poll is open

export const emptyQuestion = (kind) => ({
  kind, name: "", text: {}, options: kind === "number" ? [] : [{}, {}], choose: "2", skip: false, from: "0", to: "100", step: "1", want: "distribution",
});

export function emptyDraft({ start, now }, zone) {
  return {
    name: "", holder: "", languages: ["en"], title: {}, purpose: {}, questions: [emptyQuestion("choice")], access: "invited", at_most: "",
    closes: someDaysLater(now, DAYS, 18), zone, clients: String(start.clients), target: "", privacy: "epsilon", epsilon: start.epsilon,
    random: start.random, ask: "best", lifetime: "", accept_error: false,
  };
}

/** The draft of this tab, or an empty one. */
export function loadDraft(key, empty) {
  try { return { ...empty, ...JSON.parse(sessionStorage.getItem(key) ?? "{}") }; } catch { return empty; }
}

export function saveDraft(key, draft) {
  try { sessionStorage.setItem(key, JSON.stringify(draft)); } catch { /* private windows store nothing */ }
}

export function forgetDraft(key) {
  try { sessionStorage.removeItem(key); } catch { /* nothing is stored */ }
}

/** Set a value by its path, "questions.0.text.en". */
export function put(draft, path, value) {
  const names = path.split("."), last = names.pop();
  names.reduce((part, name) => part[name], draft)[last] = value;
}

export const at = (draft, path) => path.split(".").reduce((part, name) => part?.[name], draft);

/** A word for the API made of a text: ASCII letters, digits and hyphens, starting with a letter. */
export function slug(text, longest = 24) {
  const plain = (text ?? "").normalize("NFKD").replaceAll(/[\u0300-\u036f]/g, "").replaceAll("ß", "ss").toLowerCase();
  const words = plain.replaceAll(/[^a-z0-9]+/g, "-").replace(/^[^a-z]+/, "");
  return (words.length > longest ? words.slice(0, longest + 1).replace(/-[^-]*$/, "") : words).slice(0, longest).replace(/-+$/, "");
}

/** The body of a request, and what is missing: [path of the field, text]. */
export function bodyOf(draft, taken = []) {
  const missing = [], languages = draft.languages;
  const need = (path, text) => { missing.push([path, text]); };
  const words = (path, text) => {
    const texts = Object.fromEntries(languages.map((code) => [code, (at(draft, path)?.[code] ?? "").trim()]));
    for (const code of languages) if (!texts[code]) need(`${path}.${code}`, languages.length > 1 ? `${text} (${code})` : text);
    return new Set(Object.values(texts)).size === 1 ? texts[languages[0]] : texts;
  };
  const numeral = (path, text, isOptional = false) => {
    const value = String(at(draft, path) ?? "").trim();
    if (value ? !/^-?\d{1,12}(\.\d{1,12})?$/.test(value) : !isOptional) need(path, text);
    return value;
  };
  if (!draft.holder.trim()) need("holder", "who asks");
  const title = words("title", "the title"), purpose = words("purpose", "the purpose");
  const name = draft.name.trim() || slug(title[languages[0]] ?? title) || "poll";
  if (!/^[A-Za-z][A-Za-z0-9_-]{0,62}$/.test(name)) need("name", "a short name of letters, digits, _ or -");
  if (taken.includes(name)) need("name", `another short name: "${name}" is taken`);
  const questions = questionsOf(draft, { words, numeral, need });
  if (!draft.questions.length) need("questions", "a question");
  const closes = withZone(draft.closes, draft.zone);
  if (!closes) need("closes", "the closing time");
  const clients = Number(draft.clients);
  if (!Number.isInteger(clients) || clients < 1) need("clients", "the number of people");
  const body = { poll: name, holder: draft.holder.trim(), title, purpose, languages, access: draft.access, closes, clients, questions };
  if (draft.privacy === "epsilon") body.epsilon = numeral("epsilon", "the privacy limit");
  body.ask = Number(draft.ask) ? (Number(draft.ask) < draft.questions.length ? Number(draft.ask) : "all") : draft.privacy === "random" ? "all" : draft.ask;
  if (draft.lifetime) body.lifetime = numeral("lifetime", "the lifetime limit");
  if (draft.access === "open" && draft.at_most) body.at_most = Number(numeral("at_most", "the most reports"));
  if (draft.accept_error) body.accept_error = true;
  return { body, missing };
}

function questionsOf(draft, { words, numeral, need }) {
  const questions = {};
  draft.questions.forEach((question, index) => {
    const path = `questions.${index}`, label = `question ${index + 1}`, own = { text: words(`${path}.text`, `the text of ${label}`) };
    const name = question.name.trim() || slug(typeof own.text === "string" ? own.text : own.text[draft.languages[0]]) || `question-${index + 1}`;
    const unique = name in questions && !question.name.trim() ? `${name.slice(0, 50)}-${index + 1}` : name;
    if (unique in questions || !/^[A-Za-z][A-Za-z0-9_-]{0,62}$/.test(unique)) need(`${path}.name`, `another name of ${label}`);
    if (question.kind === "number") {
      for (const [key, text] of [["from", "the smallest number"], ["to", "the largest number"], ["step", "the step"]]) own[key] = numeral(`${path}.${key}`, `${text} of ${label}`);
      if (question.want === "mean") own.want = "mean";
    } else {
      own.options = optionsOf(question, path, label, draft.languages, { words, need });
      if (question.kind === "some") own.choose = Number(numeral(`${path}.choose`, `how many answers ${label} accepts`));
      if (question.kind === "any") own.choose = "any";
      if (question.kind === "choice" && question.skip) own.skip = true;
    }
    if (draft.privacy === "random") own.random = draft.random;
    questions[unique] = own;
  });
  return questions;
}

/** Options as a list if they read the same in all languages, and otherwise labels by id. */
function optionsOf(question, path, label, languages, { words, need }) {
  const labels = question.options.map((_, index) => words(`${path}.options.${index}`, `option ${index + 1} of ${label}`));
  if (labels.length < 2) need(`${path}.add`, `at least 2 options of ${label}`);
  const ids = [];
  labels.forEach((each, index) => {
    const first = typeof each === "string" ? each : each[languages[0]];
    if (labels.slice(0, index).some((other) => first && (typeof other === "string" ? other : other[languages[0]]) === first)) need(`${path}.options.${index}.${languages[0]}`, `another option ${index + 1} of ${label}: it is there twice`);
    const id = slug(first) || `option-${index + 1}`;
    ids.push(ids.includes(id) ? `${id}-${index + 1}` : id);
  });
  if (labels.every((each) => typeof each === "string")) return labels;
  return Object.fromEntries(labels.map((each, index) => [ids[index], each]));
}
