// The expected error: the noise around the true value, as the service drew it.

import { show } from "./chart.js";
import { number, shortUnit } from "./elements.js";

/** Show the chart of a quote; a sentence where there is none, or where the error depends on the data. */
export function picture(quote) {
  const chart = quote?.charts?.error;
  const several = quote?.expected.length > 1;
  show("picture", chart ?? { title: titleOf(quote), svg: "", table: several ? errorsOf(quote) : null });
  const only = quote?.expected.length === 1 ? quote.expected[0] : null;
  document.querySelector('#picture [data-part="about"]').textContent = only?.caution ? sentence(only.caution) : several ? rangeOf(quote) : "";
}

/** The error of every query of a request, as a table. */
function errorsOf(quote) {
  const rows = quote.expected.map((part) => [part.question, number(part.price, 3), part.error === null ? "depends on the data" : number(part.error, 3)]);
  return { columns: ["query", `cost, ${shortUnit(quote.unit)}`, "error, 95%"], rows };
}

function rangeOf(quote) {
  const errors = quote.expected.map((part) => part.error);
  if (errors.includes(null)) return "";
  const [least, most] = [Math.min(...errors), Math.max(...errors)].map((error) => number(error, 3));
  return least === most ? `Expected error of each, 95%: ${least}.` : `Expected errors, 95%: ${least} to ${most}.`;
}

function titleOf(quote) {
  if (!quote) return "Expected error";
  if (quote.expected.length === 1) return "The error depends on the data";
  const [first] = quote.expected;
  const together = "measured together: "; // as the plan states it
  const many = quote.expected.length;
  return first.caution.startsWith(together) ? `${many} answers from one measurement (${first.caution.slice(together.length)})` : `The loss is split equally between ${many} answers`;
}

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
