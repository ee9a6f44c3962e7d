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

function asked() {
  const wanted = at("wanted").value;
  const amount = wanted === "breach" ? text("amount").split(",").map((one) => one.trim()) : text("amount");
  const body = { values: Number(text("advice-values")), clients: Number(text("clients")), [wanted]: amount };
  return at("categories").checked ? { ...body, categories: true } : body;
}

async function advise() {
  const body = asked();
  const button = form.querySelector("button");
  const told = await timed(at("advice-wait"), "Searching parameters of every operator", () => post("/risk/advice", body), [button]);
  at("advised").hidden = !told;
  if (!told) return;
  at("advice-says").textContent = told.says;
  const rows = told.options.map((one) => [
    one.policy || one.operator,
    ...(one.measures ? [one.measures.epsilon === "unlimited" ? "unlimited" : number(one.measures.epsilon, 3), number(one.measures.entropy.loss, 3), number(one.measures.breach.to_for_any_prior, 3), one.error_95 === null ? "–" : number(one.error_95, 3)] : ["–", "–", "–", one.why_not]),
  ]);
  fill(at("options"), ["policy line", "epsilon", "entropy loss", "5% can become", "expected error, 95%"], rows);
  spell("advice", { advice: body });
}
