/** Public descriptions in a canonical form that is the same in every language, and their fingerprints. */

import { Refused } from "./refused.js";
import { hex, sha256, utf8 } from "./sha256.js";

/** The SHA-256 of plain values in canonical form. */
export function fingerprintOf(content) {
  return hex(sha256(utf8(canonical(content))));
}

/** JSON with sorted keys, no spaces, and ASCII only. Numbers are integers: others are written as text. */
export function canonical(content) {
  if (Array.isArray(content)) return `[${content.map(canonical).join(",")}]`;
  if (content !== null && typeof content === "object") {
    const parts = Object.keys(content).sort().map((key) => `${ascii(key)}:${canonical(content[key])}`);
    return `{${parts.join(",")}}`;
  }
  if (typeof content === "string") return ascii(content);
  if (typeof content === "boolean" || content === null || Number.isSafeInteger(content)) return String(content);
  throw new Refused(
    "The description contains a number that is not whole, or too large to be read exactly.",
    "Such numbers must be written as text. Nothing was sent.",
  );
}

function ascii(text) {
  const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, escaped);
}
