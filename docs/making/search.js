// Look for words in the headings of all pages. Without a script the field is not shown, and nothing else is missing.
const field = document.querySelector("#search"), list = document.querySelector("#found");
field.hidden = false;
const up = document.documentElement.dataset.up;
function look() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = words.length ? HEADINGS.filter(([text, page]) => words.every(word => `${text} ${page}`.toLowerCase().includes(word))) : [];
  list.replaceChildren(...hits.slice(0, 12).map(([text, page, place]) => {
    const item = document.createElement("li"), link = document.createElement("a"), where = document.createElement("span");
    link.href = up + place; link.textContent = text; where.textContent = text === page ? "" : ` ${page}`;
    item.append(link, where);
    return item;
  }));
  list.hidden = !words.length;
  if (words.length && !hits.length) list.textContent = "No heading has these words.";
}
field.addEventListener("input", look);
