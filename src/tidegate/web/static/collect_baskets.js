// Comparison of operators for sets of items. These are typical parameters, not the best ones: `tidegate collect design` finds those.

import { number } from "./elements.js";
import { quietly } from "./api.js";

const LARGEST = 3;
const USUAL = [
  { operator: "cut-and-paste", cutoff: 2, rho: 0.3 },
  { operator: "cut-and-paste", cutoff: 3, rho: 0.2 },
  { operator: "cut-and-paste", cutoff: 3, rho: 0.1 },
  { operator: "mask", keep: 0.8 },
  { operator: "mask", keep: 0.9 },
];

/** {"value": advice} in the adviser's format for single values, or {"error"}. */
export async function presets(about) {
  const size = Math.min(LARGEST, about.values), options = [];
  for (const usual of USUAL.filter((preset) => (preset.cutoff ?? 0) <= size)) {
    const { value, error } = await quietly("POST", "/v1/risk/baskets", { ...usual, size, items: about.values });
    if (error) return { error };
    options.push(option(usual, size, value));
  }
  const says = `Typical operators for baskets of up to ${size} of ${number(about.values)} items. To find the best one for your limits, run: tidegate collect design --items ${about.values} --clients 5000 --epsilon 4 --min-support 0.1`;
  return { value: { says, options } };
}

function option({ operator, ...parameters }, size, measured) {
  const measures = { epsilon: measured.epsilon ?? "unlimited", breach: { to_for_any_prior: measured.breach.to_for_any_prior }, entropy: { loss: measured.item.entropy_loss } };
  return { operator, parameters: { ...parameters, largest: size }, error_95: null, measures };
}
