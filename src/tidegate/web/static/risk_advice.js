// The adviser: operators that meet a privacy requirement, and their expected errors.

import { fill, number } from "./elements.js";
import { timed } from "./live.js";
import { at, spell, text } from "./risk_requests.js";
import { post } from "./api.js";

const USUAL = { epsilon: "2", interval: "0.5", breach: "0.05, 0.5", loss: "0.2" };
const form = at("advice");

export function startAdvice() {
  at("wanted").addEventListener("change", () => { at("amount").value = USUAL[at("wanted").value]; });
  form.addEventListener("submit", (event) => { event.preventDefault(); advise(); });
}

function requestBody() {
  const requirement = at("wanted").value;
  const amount = requirement === "breach" ? text("amount").split(",").map((option) => option.trim()) : text("amount");
  const body = { values: Number(text("advice-values")), clients: Number(text("clients")), [requirement]: amount };
  return at("categories").checked ? { ...body, categories: true } : body;
}

async function advise() {
  const body = requestBody();
  const button = form.querySelector("button");
  const recommended = await timed(at("advice-wait"), "Searching parameters of every operator", () => post("/v1/risk/advice", body), [button]);
  at("advised").hidden = !recommended;
  if (!recommended) return;
  at("advice-says").textContent = recommended.says;
  const rows = recommended.options.map((option) => [
    option.policy || option.operator,
    ...(option.measures ? [option.measures.epsilon === "unlimited" ? "unlimited" : number(option.measures.epsilon, 3), number(option.measures.entropy.loss, 3), number(option.measures.breach.to_for_any_prior, 3), option.error_95 === null ? "–" : number(option.error_95, 3)] : ["–", "–", "–", option.why_not]),
  ]);
  fill(at("options"), ["policy line", "epsilon", "entropy loss", "5% can become", "expected error, 95%"], rows);
  spell("advice", { advice: body });
}
