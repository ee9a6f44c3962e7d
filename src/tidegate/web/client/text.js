/** Numbers for sentences: 0.0625, 2.39, 48,842. The digits are the same in every language: halves round to even. */

import { Fraction } from "./fraction.js";

/** A number or a Fraction with about `digits` digits. */
export function say(value, digits = 3) {
  const number = value instanceof Fraction ? value.toNumber() : value;
  if (!Number.isFinite(number)) return `about 10^${commas(String(value.n / value.d).length - 1)}`;
  if (Number.isInteger(number) && Math.abs(number) < 1e15) return commas(BigInt(number));
  const size = Math.abs(number);
  const said = size >= 1e-4 && size < 1e6 ? plainly(size, digits) : shortly(size, digits);
  return number < 0 ? `-${said}` : said;
}

/** 1234567n as 1,234,567. */
export function commas(whole) {
  return String(whole).replace(/\B(?=(\d{3})+$)/g, ",");
}

function plainly(size, digits) {
  const places = Math.max(0, digits - 1 - scientific(size, 7).exponent);
  const shifted = String(ofDouble(size).times(10n ** BigInt(places)).round()).padStart(places + 1, "0");
  const [whole, rest] = [shifted.slice(0, shifted.length - places), shifted.slice(shifted.length - places)];
  const kept = rest.replace(/0+$/, "");
  return kept ? `${commas(whole)}.${kept}` : commas(whole);
}

/** The same as printf's %.3g with an exponent. */
function shortly(size, digits) {
  const { whole, exponent } = scientific(size, digits);
  if (exponent === -4) return `0.000${String(whole).replace(/0+$/, "")}`; // rounded up so that no exponent is needed
  const text = String(whole).replace(/0+$/, "");
  const mantissa = text.length > 1 ? `${text[0]}.${text.slice(1)}` : text;
  return `${mantissa}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

/** `digits` leading digits as an integer, and the power of ten of the first digit. */
function scientific(size, digits) {
  const exact = ofDouble(size);
  let exponent = Math.floor(Math.log10(size)) - 1; // never too high; corrected below
  let whole = leading(exact, exponent, digits);
  while (whole >= 10n ** BigInt(digits)) whole = leading(exact, ++exponent, digits);
  return { whole, exponent };
}

function leading(exact, exponent, digits) {
  const places = digits - 1 - exponent;
  return (places < 0 ? exact.over(10n ** BigInt(-places)) : exact.times(10n ** BigInt(places))).round();
}

/** The exact value of a double. */
function ofDouble(size) {
  let [mantissa, under] = [size, 0];
  while (!Number.isInteger(mantissa)) [mantissa, under] = [mantissa * 2, under + 1];
  return new Fraction(BigInt(mantissa), 1n << BigInt(under));
}
