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
const shares = (itemset) => (itemset.support === null ? ["unknown", `${percent(itemset.low)} to ${percent(itemset.high)}`] : [percent(itemset.support), band(itemset.support, itemset.error)]);

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
  const query = new URLSearchParams({ question: basket, min_support: support(), min_confidence: confidence() });
  const { value, error } = await timed(at("mining"), "Finding rules", () => quietly("GET", `${page.at}/rules?${query}`));
  tell(error);
  if (value) show(value);
}

/** Established rules have an interval that allows for their selection; the others may be chance. */
const interval = (rule) => (rule.established ? `${percent(rule.low)} to ${percent(rule.high)}` : band(rule.confidence, rule.confidence_error));

function show(result) {
  const best = result.rules.find((rule) => rule.established), says = result.screening ? ` ${result.screening.says}.` : "";
  const plural = (list, word) => `${list.length.toLocaleString("en")} ${word}${list.length === 1 ? "" : "s"}`;
  const first = best ? ` An established rule: baskets with ${best.given.join(" and ")} also contain ${best.then.join(" and ")} in ${percent(Math.min(1, best.confidence))} of cases (${interval(best)}).` : "";
  at("rules-say").textContent = `${plural(result.itemsets, "itemset")} in at least ${percent(result.min_support)} of ${result.reports.toLocaleString("en")} baskets, and ${plural(result.rules, "rule")}.${says}${first} ${result.warning ?? ""} ${result.stopped ?? ""}`.trim();
  const ordered = [...result.rules].sort((a, b) => Number(b.established) - Number(a.established));
  const shown = ordered.slice(0, SHOWN), sets = [...result.itemsets].sort((a, b) => b.items.length - a.items.length || b.support - a.support).slice(0, SHOWN);
  fill(at("rules"), shown.length ? ["baskets with", "also contain", "confidence", "interval", "support", "list"] : [], shown.map((rule) => [rule.given.join(", "), rule.then.join(", "), percent(Math.min(1, rule.confidence)), interval(rule), percent(rule.support), rule.established ? "established" : "may be chance"]));
  fill(at("itemsets"), sets.length ? ["items", "support", "95% interval"] : [], sets.map((itemset) => [itemset.items.join(", "), ...shares(itemset)]));
}
