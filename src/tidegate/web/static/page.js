// Functions of every console page: theme, explanations, sign out, copy buttons.

import { url } from "./address.js";
import { post, tell } from "./api.js";

const root = document.documentElement;
const THEMES = ["", "light", "dark"];

function keep(name, value) {
  try { localStorage.setItem(name, value); } catch { /* private windows store nothing: the choice applies to this page only */ }
}

function showTheme(button) {
  button.textContent = `Theme: ${root.dataset.theme || "system"}`;
}

function nextTheme(button) {
  const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "") + 1) % THEMES.length];
  root.dataset.theme = next;
  keep("theme", next);
  showTheme(button);
}

function showExplanations(button) {
  const on = root.dataset.explain !== "off";
  button.setAttribute("aria-pressed", String(on));
  button.textContent = `Explanations: ${on ? "on" : "off"}`;
}

function switchExplanations(button) {
  root.dataset.explain = root.dataset.explain === "off" ? "on" : "off";
  keep("explain", root.dataset.explain);
  showExplanations(button);
}

async function signOut() {
  const signedOut = await post("/v1/sign-out", {});
  if (signedOut) location.assign(signedOut.next ?? url("/console/sign-in"));
}

async function copy(button) {
  const text = button.closest(".snippet").querySelector("code").textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(button.closest(".snippet").querySelector("code"));
    button.textContent = "Selected: press Ctrl-C";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

const theme = document.getElementById("theme");
const explanations = document.getElementById("explanations");
showTheme(theme);
showExplanations(explanations);
theme.addEventListener("click", () => nextTheme(theme));
explanations.addEventListener("click", () => switchExplanations(explanations));
document.getElementById("sign-out")?.addEventListener("click", signOut);
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("button.copy");
  if (button) copy(button);
});
/** Code and tables that are larger than their box can be scrolled by keyboard. */
const scrolled = new ResizeObserver((boxes) => {
  for (const target of new Set(boxes.map((box) => box.target.closest("pre, .scroll")))) {
    if (target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
for (const box of document.querySelectorAll("pre, .scroll")) {
  scrolled.observe(box);
  for (const content of box.children) scrolled.observe(content); // the content can grow while the box stays
}
addEventListener("unhandledrejection", () => tell({ what: "This page failed.", do: "Reload it. If the problem persists, contact the data holder." }));
