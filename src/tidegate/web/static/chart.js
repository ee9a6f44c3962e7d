// Charts by plotly, in the page's own colours, with the numbers in a table behind them.
// plotly.min.js is loaded when the first chart is drawn; the page names its address: <meta name="plotly" content="...">

import { fill } from "./elements.js";

let loading = null;
const drawn = new Map();

function plotly() {
  loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = document.querySelector('meta[name="plotly"]').content;
    script.onload = () => { delete document.head.appendChild; done(globalThis.Plotly); };
    script.onerror = () => failed(new Error("plotly did not load"));
    document.head.append(script);
    withoutStyles(document.head);
  });
  return loading;
}

// While it loads, plotly puts styles for its maps into the head. We draw no maps, and the page's policy refuses such styles.
function withoutStyles(head) {
  head.appendChild = (child) => (child.tagName === "STYLE" ? child : Node.prototype.appendChild.call(head, child));
}

/** A colour of the page as plotly reads it. */
export function colour(name) {
  const probe = document.createElement("span");
  probe.className = `colour-${name}`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** Draw a chart. traces and layout are plotly's; title says the finding; table is {columns, rows}. */
export async function chart(id, { title, traces, layout = {}, table }) {
  const place = document.getElementById(id);
  const part = (name) => place.querySelector(`[data-part="${name}"]`);
  if (title) {
    part("title").textContent = title;
    part("plot").setAttribute("aria-label", title);
  }
  if (table) fill(part("table"), table.columns, table.rows);
  drawn.set(id, { traces, layout });
  await draw(id);
}

async function draw(id) {
  const { traces, layout } = drawn.get(id);
  const Plotly = await plotly();
  const plot = document.getElementById(id).querySelector('[data-part="plot"]');
  const painted = typeof traces === "function" ? traces() : traces;
  const given = typeof layout === "function" ? layout() : layout;
  const axis = { gridcolor: colour("line"), linecolor: colour("line"), zerolinecolor: colour("line"), automargin: true };
  const whole = {
    margin: { l: 52, r: 12, t: 8, b: 44 }, height: 300, showlegend: painted.length > 1,
    legend: { orientation: "h", y: -0.25 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colour("ink"), family: "system-ui, sans-serif", size: 13 }, hovermode: "closest",
    ...given, xaxis: { ...axis, ...given.xaxis }, yaxis: { ...axis, ...given.yaxis },
  };
  plot.style.minHeight = `${whole.height}px`; // plotly fills its place, and does not make it higher
  await Plotly.react(plot, painted, whole, { displayModeBar: false, responsive: true });
}

document.addEventListener("themed", () => { for (const id of drawn.keys()) draw(id); });
