// The expected error: the noise around the true value, as the service drew it.

import { show } from "./chart.js";

/** Show the chart of a quote; a sentence where there is none, or where the error depends on the data. */
export function picture(told) {
  const chart = told?.charts?.error;
  show("picture", chart ?? { title: said(told), svg: "", table: null });
  const only = told?.expected.length === 1 ? told.expected[0] : null;
  document.querySelector('#picture [data-part="about"]').textContent = only?.caution ? sentence(only.caution) : "";
}

function said(told) {
  if (!told) return "Expected error";
  return told.expected.length > 1 ? `The loss is split equally between ${told.expected.length} answers` : "The error depends on the data";
}

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
