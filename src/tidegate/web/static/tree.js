// A decision tree as nested lists, from its lines: two spaces of indentation are one level.

import { showCode } from "./code.js";
import { element } from "./elements.js";
import { timed } from "./live.js";
import { withOptions } from "./snippets.js";
import { quietly, tell } from "./api.js";

const at = (id) => document.getElementById(id);

/** Nested lists of lines. */
export function nested(lines) {
  const root = element("ul", { class: "tree" }), open = [root];
  for (const line of lines) {
    const depth = (line.length - line.trimStart().length) / 2;
    open.length = depth + 1;
    const [test, leaf] = line.trim().split(/: (?=[^:]*$)/);
    const item = element("li", {}, test, ...(leaf ? [": ", element("strong", {}, leaf)] : []));
    open[depth].append(item);
    const below = element("ul");
    if (!leaf) item.append(below);
    open.push(below);
  }
  return root;
}

export function trees(page) {
  const form = at("tree-form");
  if (!form) return;
  const boxes = [...form.querySelectorAll('input[name="by"]')];
  const leaveLabelOut = () => { for (const box of boxes) box.disabled = box.value === at("label").value; };
  const by = () => boxes.filter((box) => box.checked && !box.disabled).map((box) => box.value);
  if (!at("label").value) {
    form.hidden = true;
    at("tree-says").textContent = "A decision tree predicts a category, but this collection has no question about a category.";
    return;
  }
  form.addEventListener("change", leaveLabelOut);
  leaveLabelOut();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const label = at("label").value, strategy = at("strategy").value, from = by();
    if (!from.length) return tell({ what: "A tree needs at least one question to predict from.", do: "Select at least one." });
    showCode(withOptions(page.all_codes[`tree ${label}`], [`by=${JSON.stringify(from)}`, `strategy="${strategy}"`], [...from.flatMap((question) => ["--by", question]), "--strategy", strategy]));
    const query = new URLSearchParams([["label", label], ["strategy", strategy], ...from.map((question) => ["by", question])]);
    const { value, error } = await timed(at("growing"), "Growing the tree", () => quietly("GET", `${page.at}/tree?${query}`), form.querySelectorAll("button"));
    tell(error);
    return value ? show(value) : null;
  });
}

function show(result) {
  const leaves = result.leaves === 1 ? "one leaf (the answers do not predict it)" : `${result.leaves} leaves`;
  at("tree-says").textContent = `${result.label} from ${result.questions.join(", ")}: ${leaves}, grown from ${result.reports.toLocaleString("en")} reports with the strategy “${result.strategy}”.`;
  at("tree").replaceChildren(nested(result.tree));
}
