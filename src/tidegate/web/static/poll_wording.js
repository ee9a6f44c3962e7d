// All texts of a poll, one card per language, so that they can be compared. The same as the macro in poll_parts.html.

import { element } from "./elements.js";

function card(texts, names) {
  const questions = texts.questions.flatMap((question) => [
    element("h4", {}, question.text),
    ...(question.options.length ? [element("ul", {}, ...question.options.map((label) => element("li", {}, label)))] : []),
    element("div", { class: "privacy", lang: texts.sentences_in }, ...question.sentences.map((sentence) => element("p", { class: "quiet small" }, sentence))),
  ]);
  const inEnglish = texts.sentences_in !== texts.language.split("-")[0];
  return element(
    "article", { class: "card wording", lang: texts.language },
    element("p", { class: "quiet small", lang: "en" }, `${names[texts.language] ?? texts.language}${inEnglish ? ": the form's own texts are in English" : ""}`),
    element("h3", {}, texts.title), element("p", {}, `${texts.holder}. ${texts.purpose}`), ...questions,
  );
}

export const showWording = (target, reads, names) => target.replaceChildren(...reads.map((texts) => card(texts, names)));
