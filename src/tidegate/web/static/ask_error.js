// The expected error: the noise around the true value, as the service drew it.

import { show } from "./chart.js";

/** Show the chart of a quote; a sentence where there is none, or where the error depends on the data. */
export function picture(quote) {
  const chart = quote?.charts?.error;
  show("picture", chart ?? { title: titleOf(quote), svg: "", table: null });
  const only = quote?.expected.length === 1 ? quote.expected[0] : null;
  document.querySelector('#picture [data-part="about"]').textContent = only?.caution ? sentence(only.caution) : "";
}

function titleOf(quote) {
  if (!quote) return "Expected error";
  return quote.expected.length > 1 ? `The loss is split equally between ${quote.expected.length} answers` : "The error depends on the data";
}

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
