// Errors of form fields, shown at the field.

import { element } from "./elements.js";

export const ABOVE_ZERO = "Enter a number above 0.";

/** The error of a field that needs a number above 0; null if it is valid. */
export function aboveZero(input) {
  return !input.validity.badInput && input.value.trim() !== "" && Number(input.value) > 0 ? null : ABOVE_ZERO;
}

/** Show an error at a field; null removes it. */
export function fieldError(input, text) {
  const id = `${(input.id ||= `field-${Math.random().toString(36).slice(2)}`)}-error`;
  const shown = document.getElementById(id);
  if (!text) {
    shown?.remove();
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-errormessage");
    return;
  }
  input.setAttribute("aria-invalid", "true");
  input.setAttribute("aria-errormessage", id);
  if (shown) shown.textContent = text;
  else (input.closest(".wish, .condition, .row > div, .field, [data-wish]") ?? input.parentElement).append(element("p", { id, class: "field-error", role: "alert" }, text));
}
