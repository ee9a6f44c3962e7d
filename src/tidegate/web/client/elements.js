/** Elements: text is always text, never markup. */

/** Create an element with attributes (true: present; false, null: absent) and children. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

/** Show children in a section; without children, hide it. */
export function show(place, ...children) {
  place.replaceChildren(...children);
  place.hidden = children.length === 0;
}

export const sentence = (text, kind = null) => element("p", { class: kind }, text);
