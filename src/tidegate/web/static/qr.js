// A QR code as SVG, from the modules that the service computed.

const QUIET = 4; // modules of the white border that readers need
const SVG = "http://www.w3.org/2000/svg";

/** The drawing of {size, bits}: always dark on white, also in dark mode and on paper. */
export function qrCode({ size, bits }, label) {
  const bytes = Uint8Array.from(atob(bits), (letter) => letter.charCodeAt(0));
  const isDark = (index) => (bytes[index >> 3] >> (7 - (index & 7))) & 1;
  let path = "";
  for (let row = 0; row < size; row += 1) {
    for (let column = 0, start = -1; column <= size; column += 1) {
      const dark = column < size && isDark(row * size + column);
      if (dark && start < 0) start = column;
      if (!dark && start >= 0) { path += `M${start} ${row}h${column - start}v1h${start - column}z`; start = -1; }
    }
  }
  const drawing = document.createElementNS(SVG, "svg"), wide = size + 2 * QUIET;
  for (const [name, value] of [["class", "qr-code"], ["viewBox", `${-QUIET} ${-QUIET} ${wide} ${wide}`], ["role", "img"], ["aria-label", label], ["shape-rendering", "crispEdges"]]) drawing.setAttribute(name, value);
  const paper = document.createElementNS(SVG, "rect"), modules = document.createElementNS(SVG, "path");
  for (const [name, value] of [["x", -QUIET], ["y", -QUIET], ["width", wide], ["height", wide], ["fill", "#fff"]]) paper.setAttribute(name, value);
  modules.setAttribute("d", path);
  modules.setAttribute("fill", "#000");
  drawing.append(paper, modules);
  return drawing;
}
