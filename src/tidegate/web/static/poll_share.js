// Sharing a poll: new invitations, and the sheet of slips with their QR codes. Codes are in this page only.

import { element } from "./elements.js";
import { fieldError } from "./field_errors.js";
import { timed } from "./live.js";
import { quietly, tell, view } from "./api.js";
import { dateIn } from "./poll_time.js";
import { qrCode } from "./qr.js";

const page = view(), { state } = page;
const at = (id) => document.getElementById(id);
const fill = (text, values) => text.replaceAll(/\{(\w+)\}/g, (_, name) => values[name]);
let slips = [];

function wordsIn(language) {
  const values = { holder: state.holder, date: dateIn(state.closes, language) };
  return Object.fromEntries(Object.entries(page.sheet[language]).map(([name, text]) => [name, fill(text, values)]));
}

/** One slip: title, address, QR code and, for an invitation, its code. */
function slip(language, { qr, code }) {
  const words = wordsIn(language);
  const head = [element("h3", {}, state.title[language]), element("p", {}, state.purpose[language]), element("p", {}, words.invited)];
  const foot = [
    element("p", { class: "address" }, state.form),
    ...(code ? [element("p", {}, `${words.code}: `, element("strong", { class: "slip-code" }, code))] : []),
    element("p", { class: "fine" }, [words.until, code ? words.once : "", words.private].filter(Boolean).join(" ")),
  ];
  return element(
    "article", { class: "slip", lang: language },
    element("div", { class: "slip-head" }, ...head, ...(code ? [element("p", {}, words.scan)] : [])),
    qrCode(qr, code ? "QR code of the link with this code" : "QR code of the link"),
    element("div", { class: "slip-foot" }, ...foot),
  );
}

function showSheet() {
  const language = at("sheet-language")?.value ?? state.languages[0];
  const content = state.access === "open" ? [slip(language, { qr: page.qr })] : slips.map((each) => slip(language, each));
  at("sheet").replaceChildren(...content);
}

async function mint(event) {
  event.preventDefault();
  const input = at("count"), count = Number(input.value);
  const isValid = Number.isInteger(count) && count >= 1 && count <= page.most;
  fieldError(input, isValid ? null : `Enter a whole number from 1 to ${page.most.toLocaleString("en")}.`);
  if (!isValid) return;
  const { value, error } = await timed(at("minting"), "Creating invitations", () => quietly("POST", `${page.at}/sheets`, { count }), [event.submitter].filter(Boolean));
  tell(error);
  if (!value) return;
  slips = [...slips, ...value.slips];
  const total = Number(at("codes").textContent.replaceAll(",", "")) + value.slips.length;
  at("codes").textContent = total.toLocaleString("en");
  at("codes-word").textContent = total === 1 ? "invitation" : "invitations";
  at("created-title").textContent = slips.length === 1 ? "1 new invitation" : `${slips.length.toLocaleString("en")} new invitations`;
  at("created").hidden = false;
  showSheet();
  at("created-title").focus();
}

/** Save the codes as a file: it is made in this page, and nothing is sent. */
function download() {
  const lines = [["code", "link"], ...slips.map(({ code, link }) => [code, link])].map((line) => line.join(","));
  const file = URL.createObjectURL(new Blob([`${lines.join("\n")}\n`], { type: "text/csv" }));
  element("a", { href: file, download: `${state.poll}-codes.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(file), 10_000);
  saved = true;
}

let saved = false;
addEventListener("beforeunload", (event) => { if (slips.length && !saved) event.preventDefault(); });
addEventListener("afterprint", () => { saved ||= slips.length > 0; });
at("mint")?.addEventListener("submit", (event) => { saved = false; mint(event); });
at("download")?.addEventListener("click", download);
at("sheet-language")?.addEventListener("change", showSheet);
at("print")?.addEventListener("click", () => print());
if (state.access === "open") showSheet();
