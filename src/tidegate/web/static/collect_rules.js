// Association rules from randomized baskets, with their errors.

import { showCode } from "./code.js";
import { fill, percent } from "./elements.js";
import { timed } from "./live.js";
import { withOptions } from "./snippets.js";
import { quietly, tell } from "./api.js";

const at = (id) => document.getElementById(id), SHOWN = 40, TWO_SIDED = 1.96;
const band = (value, error) => `${percent(Math.max(0, value - TWO_SIDED * error))} to ${percent(Math.min(1, value + TWO_SIDED * error))}`;

/** From 0.1% to 100% on a log scale, in two digits. */
const support = () => Number((10 ** (-3 + (3 * Number(at("support").value)) / 100)).toPrecision(2));
const confidence = () => Number(at("confidence").value) / 100;

/** A support and its interval; for cut baskets the interval alone. */
const shares = (one) => (one.support === null ? ["unknown", `${percent(one.low)} to ${percent(one.high)}`] : [percent(one.support), band(one.support, one.error)]);

export function rules(page) {
  const form = at("rules-form");
  if (!form) return;
  const say = () => {
    at("support-says").textContent = percent(support());
    at("confidence-says").textContent = percent(confidence());
  };
  form.addEventListener("input", say);
  form.addEventListener("change", () => find(page));
  form.addEventListener("submit", (event) => { event.preventDefault(); find(page); });
  at("support").value = "67";
  say();
}

async function find(page) {
  const basket = at("basket").value;
  const options = [`min_support=${support()}`, `min_confidence=${confidence()}`];
  showCode(withOptions(page.all_codes[`rules ${basket}`], options, ["--min-support", support(), "--min-confidence", confidence()]));
  const asked = new URLSearchParams({ question: basket, min_support: support(), min_confidence: confidence() });
  const { value, error } = await timed(at("mining"), "Finding rules", () => quietly("GET", `${page.at}/rules?${asked}`));
  tell(error);
  if (value) show(value);
}

function show(found) {
  const [best] = found.rules;
  const many = (list, word) => `${list.length.toLocaleString("en")} ${word}${list.length === 1 ? "" : "s"}`;
  const first = best ? ` The most reliable rule: baskets with ${best.given.join(" and ")} also contain ${best.then.join(" and ")} in ${percent(Math.min(1, best.confidence))} of cases (${band(best.confidence, best.confidence_error)}).` : "";
  at("rules-say").textContent = `${many(found.itemsets, "itemset")} in at least ${percent(found.min_support)} of ${found.reports.toLocaleString("en")} baskets, and ${many(found.rules, "rule")}.${first} ${found.warning ?? ""} ${found.stopped ?? ""}`.trim();
  const shown = found.rules.slice(0, SHOWN), sets = [...found.itemsets].sort((a, b) => b.items.length - a.items.length || b.support - a.support).slice(0, SHOWN);
  fill(at("rules"), shown.length ? ["baskets with", "also contain", "confidence", "95% interval", "support"] : [], shown.map((rule) => [rule.given.join(", "), rule.then.join(", "), percent(Math.min(1, rule.confidence)), band(rule.confidence, rule.confidence_error), percent(rule.support)]));
  fill(at("itemsets"), sets.length ? ["items", "support", "95% interval"] : [], sets.map((one) => [one.items.join(", "), ...shares(one)]));
}
