/**
 * The simulator: 100 people with the same true answer, the reports that their devices would send, and what the holder
 * concludes from all of them. It runs the question's own operator and sends nothing.
 *
 * Dots differ by shape and letter, not only by color; a table and a sentence say the same.
 */

import { SystemBytes } from "./bits.js";
import { element, sentence, show } from "./elements.js";
import { estimateMean, estimateShares } from "./estimate.js";
import { valueAt } from "./universe.js";

const PEOPLE = 100;
const FEW = 12; // options that have a letter and a row of the table
const LISTED = 200; // options to choose from
const CELLS = 5; // ranges of numbers in the table
const STACKS = 40; // columns of the dots of numbers
const SVG = "http://www.w3.org/2000/svg";

/** The simulator of a question as an element; null for an operator that it cannot show. */
export function simulatorOf(name, question, operator, words, holder, isOpen) {
  const kind = kindOf(question, operator);
  if (!kind) return null;
  const context = { id: `simulator-${name}`, name, question, operator, words, holder };
  const { picker, read } = kind.picker(context);
  const button = element("button", { type: "button", class: "quiet" }, words.fill("simulator.roll"));
  const result = element("div", { class: "rolled", hidden: true });
  const live = element("p", { class: "concluded", role: "status" });
  button.addEventListener("click", () => {
    const code = read();
    const { dots, table, says } = kind.outcome(context, code, roll(operator, code));
    show(result, dots, table);
    live.textContent = says;
    button.textContent = words.fill("simulator.again");
  });
  const summary = element("summary", {}, words.fill("simulator.title"));
  const about = sentence(words.fill("simulator.about"), "hint");
  return element("details", { class: "simulator", open: isOpen }, summary, about, picker, element("p", {}, button), live, result);
}

function kindOf({ universe, operator: word }, operator) {
  if (operator.choices) return { picker: pickSeveral, outcome: outcomeOfOptions };
  if (operator.p && operator.supports) return { picker: pickOption, outcome: outcomeOfOptions };
  const hasMean = universe.numeric && !universe.span && !universe.starts;
  if (hasMean && ["square-wave", "hybrid"].includes(word)) return { picker: pickNumber, outcome: outcomeOfNumbers };
  return null;
}

/** The reports of 100 people with the same true answer. */
function roll(operator, code) {
  const source = new SystemBytes();
  return Array.from({ length: PEOPLE }, () => operator.repeated(operator.sample(code, source), source));
}

// The true answer

function pickOption({ id, name, question, operator, words }) {
  const labels = Array.from({ length: Math.min(operator.values, LISTED) }, (_, code) => words.label(name, question, code));
  const options = labels.map((label, code) => element("option", { value: String(code) }, label));
  const select = element("select", { id, autocomplete: "off" }, ...options);
  const picker = element("div", {}, element("label", { for: id }, words.fill("simulator.answer")), select);
  return { picker, read: () => Number(select.value) };
}

function pickSeveral({ id, name, question, operator, words }) {
  const most = Number(question.parameters.choose?.floor() ?? operator.items);
  const codes = Array.from({ length: Math.min(operator.items, FEW) }, (_, code) => code);
  const inputs = codes.map((code) => element("input", { type: "checkbox", id: `${id}-${code}`, autocomplete: "off" }));
  const choice = (code) => element("label", { class: "choice" }, inputs[code], element("span", {}, words.label(name, question, code)));
  const limit = () => {
    const full = inputs.filter((input) => input.checked).length >= most;
    for (const input of inputs) input.disabled = full && !input.checked;
  };
  inputs[0].checked = true;
  limit();
  const legend = element("legend", {}, words.fill("simulator.answer"));
  const picker = element("fieldset", {}, legend, element("div", { class: "choices" }, ...codes.map(choice)));
  picker.addEventListener("change", limit);
  return { picker, read: () => codes.reduce((bits, code) => bits | (inputs[code].checked ? 1n << BigInt(code) : 0n), 0n) };
}

function pickNumber({ id, question: { universe }, operator, words }) {
  const middle = Math.floor((operator.values - 1) / 2);
  const said = (code) => words.number(valueAt(universe, code));
  const shown = element("output", { for: id }, said(middle));
  const range = { type: "range", min: "0", max: String(operator.values - 1), value: String(middle), autocomplete: "off" };
  const input = element("input", { id, ...range, "aria-valuetext": said(middle) });
  input.addEventListener("input", () => {
    shown.textContent = said(input.value);
    input.setAttribute("aria-valuetext", said(input.value));
  });
  const label = element("label", { for: id }, words.fill("simulator.answer"));
  const picker = element("div", {}, label, element("div", { class: "range" }, input, shown));
  return { picker, read: () => Number(input.value) };
}

// Options

function outcomeOfOptions(context, code, reports) {
  const { name, question, operator, words, holder } = context;
  const options = operator.values ?? operator.items;
  const own = operator.choices ? firstBit(code) : code;
  const isShort = options <= FEW;
  const shares = estimateShares(operator, reports, isShort || options <= LISTED * 10 ? options : Math.max(own, 1) + 1);
  const listed = isShort ? shares.map((_, option) => option) : [own, own ? 0 : 1];
  const label = (option) => words.label(name, question, option);
  const rowLabel = (option) => (isShort ? label(option) : otherLabel(context, option, own));
  const rows = listed.map((option) => rowOf(context, option, shares[option], rowLabel(option)));
  const { share, low, high } = shares[own];
  const ends = { share: words.percent(share), low: words.percent(low), high: words.percent(high) };
  const says = words.fill("simulator.result", { holder, option: words.quoted(label(own)), ...ends });
  const { draw } = operator.recipe();
  const hasLetters = isShort && ["response", "one-option"].includes(draw);
  const lettered = () => letterDots(context, own, reports, shares, draw === "one-option");
  const dots = hasLetters ? lettered() : supportDots(context, own, reports, shares[own]);
  return { dots, table: tableOf(words, holder, rows, hasLetters), says };
}

const firstBit = (code) => (code === 0n ? 0 : code.toString(2).split("").reverse().indexOf("1"));
const letter = (option) => String.fromCharCode(65 + option);

function otherLabel({ name, question, words }, option, own) {
  const label = words.label(name, question, option);
  return option === own ? label : words.fill("simulator.other", { option: words.quoted(label) });
}

function rowOf({ words }, option, { seen, of, share, low, high }, label) {
  const reports = of === PEOPLE ? words.whole(seen) : `${words.whole(seen)} / ${words.whole(of)}`;
  const interval = words.fill("simulator.range", { low: words.percent(low), high: words.percent(high) });
  return [option, label, reports, words.percent(share), interval];
}

/** One dot for each report, with the letter of the sent option: filled if it is the true one, or a yes. */
function letterDots({ name, question, words }, own, reports, shares, isOne) {
  const dots = reports.map((report) => {
    const option = isOne ? Math.floor(report / 2) : report;
    return element("span", { class: (isOne ? report % 2 : option === own) ? "dot filled" : "dot" }, letter(option));
  });
  const label = (option) => words.label(name, question, option);
  const said = ({ seen, of }, option) => {
    const count = (text, n) => words.fill("simulator.count", { label: text, n: words.whole(n) });
    const answered = (key) => words.fill(key, { option: label(option) });
    return isOne ? [count(answered("simulator.yes"), seen), count(answered("simulator.no"), of - seen)] : [count(label(option), seen)];
  };
  const counts = words.list(shares.flatMap(said));
  return dotsOf(words.fill("simulator.dots.text", { counts }), dots);
}

/** One dot for each report, filled if it supports the true option. */
function supportDots({ name, question, operator, words }, own, reports, { seen }) {
  const option = words.quoted(words.label(name, question, own));
  const dots = reports.map((report) => element("span", { class: operator.supports(report, own) ? "dot filled" : "dot" }));
  const filled = words.fill("simulator.legend.filled", { option });
  const entry = (kind, text) => element("span", {}, element("span", { class: kind }), text);
  const legend = element("p", { class: "legend" }, entry("dot filled", filled), entry("dot", words.fill("simulator.legend.hollow")));
  const counts = words.fill("simulator.count", { label: words.fill("simulator.dots.yours", { option }), n: words.whole(seen) });
  return element("div", {}, dotsOf(words.fill("simulator.dots.text", { counts }), dots), legend);
}

const dotsOf = (label, dots) => element("div", { class: "dots", role: "img", "aria-label": label }, ...dots);

function tableOf(words, holder, rows, hasLetters) {
  const cell = (tag, text, ...more) => element(tag, ...more, text);
  const heads = ["option", "sent", "estimate", "interval"].map((key) => cell("th", words.fill(`simulator.${key}`), { scope: "col" }));
  const body = rows.map(([option, label, ...texts]) => {
    const mark = hasLetters ? [element("span", { class: "dot", "aria-hidden": "true" }, letter(option)), " "] : [];
    return element("tr", {}, element("th", { scope: "row" }, ...mark, label), ...texts.map((text) => cell("td", text, {})));
  });
  const caption = element("caption", {}, words.fill("simulator.concludes", { holder }));
  const table = element("table", {}, caption, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...body));
  const scrolled = { class: "scrolled", tabindex: "0", role: "group", "aria-label": words.fill("simulator.concludes", { holder }) };
  return element("div", scrolled, table);
}

// Numbers

function outcomeOfNumbers({ question: { universe }, operator, words, holder }, code, reports) {
  const half = Math.floor((operator.reportSize - operator.values) / 2);
  const position = operator.gridPosition ? (report) => operator.gridPosition(report).toNumber() : (report) => report - half;
  const sent = reports.map(position);
  const [low, high] = [Math.min(0, ...sent), Math.max(operator.values - 1, ...sent)];
  const { mean, low: from, high: to } = estimateMean(operator, reports);
  const said = (steps) => words.number(universe.low.toNumber() + universe.width.toNumber() * steps, 3);
  const value = words.number(valueAt(universe, code));
  const says = words.fill("simulator.result.number", { holder, mean: said(mean), low: said(from), high: said(to), value });
  const label = words.fill("simulator.dots.number", { low: said(low), high: said(high), value });
  const dots = strip(label, sent, { low, high, value: code, mean, from, to, said });
  return { dots, table: numbersTable(words, holder, sent, { low, high, said }), says };
}

/** Stacked dots along the range of sent numbers. The long mark is the true number; the bar below is the estimated mean. */
function strip(label, sent, { low, high, value, mean, from, to, said }) {
  const x = (steps) => 10 + (380 * (steps - low)) / (high - low || 1);
  const heights = Array(STACKS).fill(0);
  const cells = sent.map((steps) => Math.min(STACKS - 1, Math.floor((STACKS * (steps - low)) / (high - low || 1))));
  const tall = Math.max(...cells.map((cell) => cells.filter((other) => other === cell).length));
  const [gap, base] = [Math.min(9, 120 / tall), 130];
  const circles = cells.map((cell) => {
    const y = base - 6 - gap * heights[cell]++;
    return vector("circle", { cx: 10 + (380 * (cell + 0.5)) / STACKS, cy: y, r: Math.min(4, gap / 2 - 0.3) });
  });
  const marks = [
    vector("path", { class: "axis", d: `M10 ${base}H390` }),
    vector("path", { class: "true", d: `M${x(value)} 4V${base + 6}` }),
    vector("path", { class: "bar", d: `M${x(from)} ${base + 18}H${x(to)}M${x(from)} ${base + 13}v10M${x(to)} ${base + 13}v10` }),
    vector("path", { class: "mean", d: `M${x(mean)} ${base + 11}l6 7l-6 7l-6 -7z` }),
  ];
  const text = (steps, anchor, at) => vector("text", { x: at, y: base + 42, "text-anchor": anchor }, said(steps));
  const ends = [text(low, "start", 10), text(high, "end", 390)];
  return vector("svg", { class: "strip", viewBox: "0 0 400 176", role: "img", "aria-label": label }, ...circles, ...marks, ...ends);
}

function vector(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function numbersTable(words, holder, sent, { low, high, said }) {
  const edge = (cell) => low + ((high - low) * cell) / CELLS;
  const isIn = (steps, cell) => steps >= edge(cell) && (cell === CELLS - 1 || steps < edge(cell + 1));
  const rows = Array.from({ length: CELLS }, (_, cell) => {
    const range = words.fill("simulator.range", { low: said(edge(cell)), high: said(edge(cell + 1)) });
    const count = words.whole(sent.filter((steps) => isIn(steps, cell)).length);
    return element("tr", {}, element("th", { scope: "row" }, range), element("td", {}, count));
  });
  const heads = ["numbers", "sent"].map((key) => element("th", { scope: "col" }, words.fill(`simulator.${key}`)));
  return element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows));
}
