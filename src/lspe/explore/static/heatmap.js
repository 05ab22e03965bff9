// Numbers as a heat map: a row a node, a column a step or a component.

import { kindColour, valueColour } from "./colours.js";
import { element, set, walkByKeyboard } from "./svg.js";

const ROW = 17;
const TOP = 22;
const LEFT = 62;

export class HeatmapView {
  // names[i] of node i, order of the rows, the heads of the columns, and the range of all values
  constructor(holder, { title, names, order, heads, low, high }, onActive) {
    Object.assign(this, { holder, order, low, high });
    this.svg = holder.querySelector("svg");
    set(this.svg, { "aria-label": title });
    this.heads = heads.map((head) => element("text", { class: "head" }, head));
    this.rows = order.map((node, row) => {
      const group = element("g", { class: "row", role: "img", transform: `translate(0 ${TOP + row * ROW})` });
      group.append(
        element("rect", { class: "back", x: 0, y: 0, height: ROW }),
        element("circle", { class: "dot", cx: 9, cy: ROW / 2, r: 5 }),
        element("text", { class: "name", x: LEFT - 8, y: ROW / 2 }, names[node]),
        ...heads.map(() => element("rect", { class: "cell", y: 1, height: ROW - 2 })),
      );
      group.addEventListener("pointerenter", () => onActive(node));
      group.addEventListener("pointerleave", () => onActive(null));
      group.addEventListener("blur", () => onActive(null));
      return group;
    });
    this.svg.append(...this.heads, ...this.rows);
    walkByKeyboard(this.rows, (row) => onActive(order[row]));
    new ResizeObserver(() => this.place()).observe(holder);
    this.place();
  }

  // lay the cells out in the width there is
  place() {
    const columns = this.heads.length;
    const room = this.holder.clientWidth || 480;
    const cell = Math.min(Math.max((room - LEFT - 4) / columns, 9), 26);
    const width = LEFT + columns * cell + 4;
    const height = TOP + this.rows.length * ROW + 2;
    set(this.svg, { viewBox: `0 0 ${width} ${height}`, width, height });
    const every = cell >= 17 ? 1 : cell >= 11 ? 2 : 4;
    this.heads.forEach((head, column) => {
      set(head, { x: LEFT + (column + 0.5) * cell, y: TOP - 8 });
      head.toggleAttribute("hidden", (column + 1) % every !== 0 && column !== 0);
    });
    for (const row of this.rows) {
      const [back, , , ...cells] = row.children;
      set(back, { width });
      cells.forEach((rect, column) => set(rect, { x: LEFT + column * cell + 0.5, width: Math.max(cell - 1, 1) }));
    }
  }

  // values[node][column]; columns from `shown` on are faded; descriptions[node] = { t, words }
  paint(values, descriptions, shown = this.heads.length) {
    this.heads.forEach((head, column) => head.classList.toggle("off", column >= shown));
    this.rows.forEach((row, i) => {
      const node = this.order[i];
      const [, dot, , ...cells] = row.children;
      dot.style.fill = kindColour(descriptions[node].t).fill;
      cells.forEach((rect, column) => {
        rect.style.fill = valueColour(values[node][column], this.low, this.high);
        rect.classList.toggle("off", column >= shown);
      });
      set(row, { "aria-label": `${descriptions[node].words}. Values: ${list(values[node].slice(0, shown))}` });
    });
    this.paintLegend();
  }

  paintLegend() {
    const legend = this.holder.querySelector(".legend");
    const context = legend.querySelector("canvas").getContext("2d");
    const low = this.low < 0 ? -Math.max(-this.low, this.high) : 0;
    const high = this.low < 0 ? -low : this.high;
    for (let x = 0; x < 160; x++) {
      context.fillStyle = valueColour(low + ((high - low) * x) / 159, low, high);
      context.fillRect(x, 0, 1, 1);
    }
    legend.querySelector(".low").textContent = short(low);
    legend.querySelector(".high").textContent = short(high);
  }

  light(isSame, active) {
    this.svg.classList.toggle("lit", isSame !== null);
    this.rows.forEach((row, i) => {
      row.classList.toggle("same", isSame !== null && isSame(this.order[i]));
      row.classList.toggle("active", this.order[i] === active);
    });
  }
}

export function short(value) {
  return value === 0 ? "0" : String(Number(value.toFixed(3))).replace("-", "−");
}

export function list(values) {
  return values.map(short).join(", ");
}
