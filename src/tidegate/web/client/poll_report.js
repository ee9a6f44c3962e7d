/** The report of a poll, letter by letter and in words. */

import { element, sentence } from "./elements.js";
import { bodyOf } from "./form_sending.js";

/** The report as text, and the randomized answers in words. */
export function reportParts({ words, client }, report) {
  const lines = Object.entries(report.answers).map(([name, answer]) => {
    const [question, operator] = [client.collection.questions.get(name), client.operators.get(name)];
    return reportWords(words, name, question, operator, answer);
  });
  const said = lines.every(Boolean) ? [sentence(words.fill("send.report.words", { words: lines.join("; ") }))] : [];
  return [sentence(words.fill("send.report.about"), "hint"), element("pre", { tabindex: "0" }, bodyOf(report)), ...said];
}

/** A randomized answer in words; "" for one that stands for too many options. */
function reportWords(words, name, question, operator, answer) {
  const { universe } = question;
  if (universe.kind === "text") return "";
  const label = (code) => words.label(name, question, code);
  if (question.operator === "one-option") {
    return words.fill(answer % 2 ? "simulator.yes" : "simulator.no", { option: words.quoted(label(Math.floor(answer / 2))) });
  }
  if (Array.isArray(answer)) {
    const blank = (code) => universe.kind === "items" && code >= operator.items;
    const listed = answer.map((code) => (blank(code) ? words.fill("send.blank") : words.quoted(label(code))));
    return words.list(listed) || words.fill("send.nothing");
  }
  if (!universe.numeric) return question.operator === "randomized-response" ? words.quoted(label(answer)) : "";
  if (universe.span || universe.starts) return "";
  const steps = operator.gridPosition?.(answer) ?? answer - Math.floor((operator.reportSize - operator.values) / 2);
  return words.number(universe.low.plus(universe.width.times(steps)));
}
