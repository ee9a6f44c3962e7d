// Code snippets: update the snippets of a page. codes = {"Python": "...", "Command line": "..."}

export function showCode(codes, id = "code") {
  for (const snippet of document.querySelectorAll(`#${id} .snippet`)) {
    const text = codes[snippet.dataset.kind];
    if (text !== undefined) snippet.querySelector("code").textContent = text;
  }
}
