// A graph as a drawing: discs for nodes, lines for edges; of a molecule the lines and letters that RDKit draws.

import { kindColour } from "./colours.js";
import { element, set, walkByKeyboard } from "./svg.js";

const RADIUS = { molecule: 0.36, other: 0.24 };
const MARGIN = 0.9;
const LEAST = { width: 7, height: 5.5 }; // small graphs are not blown up

export class MoleculeView {
  // graph = { nodes, edges, picture }, the last null but of a molecule; onActive(node) is called when a node is
  // pointed at or focused, and onActive(null) when no longer
  constructor(svg, title, graph, onActive) {
    Object.assign(this, { svg, graph });
    this.radius = graph.picture ? RADIUS.molecule : RADIUS.other;
    set(svg, { "aria-label": title, viewBox: box(graph, LEAST) });
    this.edges = graph.edges.map((edge) => this.edge(edge));
    this.nodes = graph.nodes.map((node) => this.node(node));
    this.lines = graph.picture && drawnByRDKit(graph.picture);
    svg.append(...this.edges, ...this.nodes, ...(this.lines ? [this.lines] : []));
    this.nodes.forEach((node, i) => {
      node.addEventListener("pointerenter", () => onActive(i));
      node.addEventListener("pointerleave", () => onActive(null));
      node.addEventListener("blur", () => onActive(null));
    });
    walkByKeyboard(this.nodes, onActive);
  }

  edge({ first, second }) {
    const [a, b] = [this.graph.nodes[first], this.graph.nodes[second]];
    return element("line", { class: this.graph.picture ? "push" : "bond", x1: a.x, y1: -a.y, x2: b.x, y2: -b.y });
  }

  node({ x, y }) {
    const group = element("g", { class: "node", role: "img", transform: `translate(${x} ${-y})` });
    group.append(
      element("circle", { class: "halo", r: this.radius + 0.11 }),
      element("circle", { class: "ground", r: this.radius + 0.03 }),
      element("circle", { class: "disc", r: this.radius }),
      element("text"),
    );
    return group;
  }

  // descriptions[node] = { t or fill, text, words }: the place of its colour or the colour itself, what is written on
  // it, what is said of it; without a text the letters of RDKit are seen
  paint(descriptions) {
    this.nodes.forEach((node, i) => {
      const { t, text, words } = descriptions[i];
      const { fill, ink } = t === undefined ? descriptions[i] : kindColour(t);
      const [, , disc, label] = node.children;
      disc.style.fill = fill;
      label.style.fill = ink ?? "";
      label.textContent = text ?? "";
      set(label, { class: label.textContent.length > 2 || !this.graph.picture ? "small" : "" });
      set(node, { "aria-label": words });
    });
    const isLettered = descriptions.some(({ text }) => text !== null);
    this.svg.classList.toggle("lettered", isLettered);
    if (this.lines) this.svg.insertBefore(this.lines, isLettered ? this.nodes[0] : null);
  }

  // the colour of each bond of a molecule
  paintBonds(fills) {
    this.edges.forEach((edge, i) => (edge.style.stroke = fills[i]));
  }

  // light up the nodes for which isSame(node) holds; none with null
  light(isSame, active) {
    this.svg.classList.toggle("lit", isSame !== null);
    this.nodes.forEach((node, i) => {
      node.classList.toggle("same", isSame !== null && isSame(i));
      node.classList.toggle("active", i === active);
    });
  }
}

// a picture without anything to point at
export function drawStill(svg, title, graph) {
  set(svg, { role: "img", "aria-label": title, viewBox: box(graph, { width: 4, height: 3 }) });
  svg.replaceChildren(drawnByRDKit(graph.picture));
}

function box({ nodes }, least) {
  const range = (values, atLeast) => {
    const [low, high] = [Math.min(...values) - MARGIN, Math.max(...values) + MARGIN];
    const more = Math.max(0, atLeast - (high - low));
    return [low - more / 2, high - low + more];
  };
  const [left, width] = range(nodes.map((node) => node.x), least.width);
  const [top, height] = range(nodes.map((node) => -node.y), least.height);
  return [left, top, width, height].join(" ");
}

// the paths of RDKit in the places of the nodes
function drawnByRDKit({ strokes, origin, unit }) {
  const group = element("g", { class: "drawn", transform: `scale(${1 / unit}) translate(${-origin[0]} ${-origin[1]})` });
  group.append(
    ...strokes.map(({ path, filled, width }) => element("path", { class: filled ? "filled" : "line", d: path, "stroke-width": width })),
  );
  return group;
}
