// Elements of SVG. Text only ever gets in as textContent.

export function element(name, attributes = {}, text = null) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  set(made, attributes);
  if (text !== null) made.textContent = text;
  return made;
}

export function set(target, attributes) {
  for (const [name, value] of Object.entries(attributes)) target.setAttribute(name, value);
}

// One tab stop for a list of parts; arrow keys, Home and End go from one to the next.
export function walkByKeyboard(parts, onFocus) {
  parts.forEach((part, place) => {
    part.setAttribute("tabindex", place === 0 ? "0" : "-1");
    part.addEventListener("focus", () => {
      parts.forEach((other) => other.setAttribute("tabindex", other === part ? "0" : "-1"));
      onFocus(place);
    });
    part.addEventListener("keydown", (event) => {
      const goal = {
        ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1,
        Home: 0, End: parts.length - 1,
      }[event.key];
      if (goal === undefined) return;
      event.preventDefault();
      parts[(goal + parts.length) % parts.length].focus();
    });
  });
}
