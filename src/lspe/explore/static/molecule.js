// A graph as a drawing: discs for nodes, lines for bonds.

import { kindColour } from "./colours.js";
import { element, set, walkByKeyboard } from "./svg.js";

const RADIUS = { molecule: 0.36, other: 0.24 };
const GAP = 0.15;
const MARGIN = 0.7;
const LEAST = { width: 7, height: 5.5 }; // small graphs are not blown up

export class MoleculeView {
  // graph = { nodes, edges, is_molecule }; onActive(node) is called when a node is pointed at or focused, and
  // onActive(null) when no longer
  constructor(svg, title, graph, onActive) {
    Object.assign(this, { svg, graph });
    this.radius = graph.is_molecule ? RADIUS.molecule : RADIUS.other;
    set(svg, { "aria-label": title, viewBox: this.box() });
    svg.append(...graph.edges.flatMap((edge) => this.bond(edge)));
    this.nodes = graph.nodes.map((node) => this.node(node));
    svg.append(...this.nodes);
    this.nodes.forEach((node, i) => {
      node.addEventListener("pointerenter", () => onActive(i));
      node.addEventListener("pointerleave", () => onActive(null));
      node.addEventListener("blur", () => onActive(null));
    });
    walkByKeyboard(this.nodes, onActive);
  }

  box() {
    const range = (values, least) => {
      const [low, high] = [Math.min(...values) - MARGIN, Math.max(...values) + MARGIN];
      const more = Math.max(0, least - (high - low));
      return [low - more / 2, high - low + more];
    };
    const [left, width] = range(this.graph.nodes.map((node) => node.x), LEAST.width);
    const [top, height] = range(this.graph.nodes.map((node) => -node.y), LEAST.height);
    return [left, top, width, height].join(" ");
  }

  bond({ first, second, order }) {
    const [a, b] = [this.graph.nodes[first], this.graph.nodes[second]];
    const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const across = [-(b.y - a.y) / length, (b.x - a.x) / length];
    return Array.from({ length: order }, (_, i) => {
      const offset = (i - (order - 1) / 2) * GAP;
      const [dx, dy] = [across[0] * offset, across[1] * offset];
      return element("line", { class: "bond", x1: a.x + dx, y1: -a.y - dy, x2: b.x + dx, y2: -b.y - dy });
    });
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

  // descriptions[node] = { t, text, words }: the place of its colour, what is written on it, what is said of it
  paint(descriptions) {
    this.nodes.forEach((node, i) => {
      const { t, text, words } = descriptions[i];
      const { fill, ink } = kindColour(t);
      const [, , disc, label] = node.children;
      disc.style.fill = fill;
      label.style.fill = ink;
      label.textContent = text;
      set(label, { class: text.length > 2 || !this.graph.is_molecule ? "small" : "" });
      set(node, { "aria-label": words });
    });
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
