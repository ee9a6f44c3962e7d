// Randomized baskets: what a report shows, and how likely an item becomes.

import { show } from "./chart.js";
import { chance, element, number } from "./elements.js";
import { at, latest, spell, text } from "./risk_requests.js";
import { quietly, tell } from "./api.js";

const form = at("basket");

export function startBaskets() {
  form.addEventListener("input", () => { showFields(); measure(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  showFields();
  measure();
}

function showFields() {
  const operator = at("basket-operator").value;
  for (const field of form.querySelectorAll("[data-for]")) field.hidden = !field.dataset.for.split(" ").includes(operator);
}

const real = (written) => Number.parseFloat(written);

function requestBody() {
  const operator = at("basket-operator").value;
  const body = { operator };
  if (text("items")) body.items = Number(text("items"));
  if (operator !== "select-a-size") body.size = Number(text("size"));
  if (operator === "cut-and-paste") return { ...body, cutoff: Number(text("cutoff")), rho: real(text("paste")) };
  if (text("insert")) body.insert = real(text("insert"));
  body.keep = operator === "mask" ? real(text("keep")) : text("keeps").split(",").map(real);
  return body;
}

const measure = latest(async (stillLatest) => {
  const body = requestBody();
  const { value, error } = await quietly("POST", "/v1/risk/baskets", { ...body, charts: true });
  if (!stillLatest()) return;
  tell(error, at("basket-problem"));
  at("basket-figures").hidden = Boolean(error);
  if (error) return;
  showFigures(value);
  show("breaches", value.charts.breaches);
  spell("baskets", { baskets: body });
});

const loss = (epsilon) => (epsilon === null ? "unlimited" : number(epsilon, 3));
const times = (odds) => (odds === null ? "unlimited" : `× ${number(odds, 3)}`);

function showFigures(measures) {
  const { item } = measures;
  const rows = [
    ["epsilon between any two baskets", loss(measures.epsilon)],
    ["epsilon if one item is replaced", loss(measures.epsilon_one_item_replaced)],
    ["probability that an item of the basket is reported", chance(item.seen_if_there)],
    ["probability that another item is reported", chance(item.seen_if_not)],
    ["odds of a reported item", times(item.odds_if_seen)],
    ["odds of an item that is not reported", times(item.odds_if_not_seen)],
    ["entropy loss per item", number(item.entropy_loss, 3)],
    ["5% can become, for any prior", chance(measures.breach.to_for_any_prior)],
    ["size of the basket", measures.size_sent ? "sent unrandomized" : "hidden"],
  ];
  at("basket-figures").replaceChildren(...rows.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}
