// The key of a chart above its picture; where the page is narrow, each line of it needs its own height.

const NARROW = 600, LINE = 20; // pixels

/** The part of a layout for so many names, of a chart that is otherwise so high. */
export function keyed(names, height) {
  const lines = innerWidth < NARROW ? names : Math.ceil(names / 4);
  return { height: height + LINE * lines, legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 } };
}
