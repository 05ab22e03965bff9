// One graph: its drawing and its heat map, linked.

import { HeatmapView, list } from "./heatmap.js";
import { MoleculeView } from "./molecule.js";

export class Panel {
  // onLight(kind, panel) is called with the kind that is pointed at, or null
  constructor(graph, onLight) {
    this.graph = graph;
    this.article = document.getElementById("panel").content.firstElementChild.cloneNode(true);
    const title = this.article.querySelector("h2");
    title.textContent = graph.title;
    title.title = graph.title;
    this.readout = this.article.querySelector(".readout");
    this.what = graph.is_molecule ? "atom" : "node";
    this.active = null;
    const onActive = (node) => {
      this.active = node;
      onLight(node === null ? null : this.kinds[node], this);
    };
    const drawn = `${graph.title}: ${graph.nodes.length} ${this.what}s`;
    this.molecule = new MoleculeView(this.article.querySelector(".molecule"), drawn, graph, onActive);
    this.heatmap = new HeatmapView(this.article.querySelector(".heat"), this.heatmapSpec(), onActive);
  }

  heatmapSpec() {
    const { title, nodes, kinds, encoding, is_molecule: isMolecule } = this.graph;
    const last = kinds.at(-1); // equal rows stand together whatever k is
    return {
      title: `Encoding of ${title} as a heat map`,
      names: nodes.map(({ label }, i) => (isMolecule ? `${label} ${i + 1}` : label)),
      order: nodes.map((_, i) => i).sort((a, b) => last[a] - last[b] || a - b),
      heads: kinds.map((_, step) => String(step + 1)),
      low: Math.min(0, ...encoding.flat()),
      high: Math.max(...encoding.flat()),
    };
  }

  // show k columns; scale(kind) is the place of its colour between 0 and 1
  paint(k, labels, scale) {
    this.k = k;
    this.kinds = this.graph.kinds[k - 1];
    this.descriptions = this.graph.nodes.map((node, i) => ({
      t: scale(this.kinds[i]),
      text: { label: this.graph.picture ? null : node.label, kind: String(this.kinds[i] + 1), number: String(i + 1) }[labels],
      words: this.describe(i),
    }));
    this.molecule.paint(this.descriptions);
    this.heatmap.paint(this.graph.encoding, this.descriptions, k);
    const distinct = new Set(this.kinds).size;
    this.article.querySelector(".count").textContent = `${distinct} distinct of ${this.graph.nodes.length} ${this.what}s`;
  }

  describe(node) {
    const { label } = this.graph.nodes[node];
    const name = this.graph.is_molecule ? `atom ${node + 1} (${label})` : `node ${label}`;
    const others = this.kinds.flatMap((kind, i) => (kind === this.kinds[node] && i !== node ? [this.name(i)] : []));
    const shared = others.length === 0 ? "no other has its encoding" : `same encoding as ${enumerate(others)}`;
    return `${name}, kind ${this.kinds[node] + 1}, ${shared}`;
  }

  name(node) {
    return this.graph.is_molecule ? String(node + 1) : this.graph.nodes[node].label;
  }

  light(kind) {
    const isSame = kind === null ? null : (node) => this.kinds[node] === kind;
    this.molecule.light(isSame, this.active);
    this.heatmap.light(isSame, this.active);
    this.readout.textContent = this.active === null ? "" : this.readoutText();
  }

  readoutText() {
    const { words } = this.descriptions[this.active];
    return `${words[0].toUpperCase()}${words.slice(1)}: ${list(this.graph.encoding[this.active].slice(0, this.k))}`;
  }
}

function enumerate(names) {
  const shown = names.length > 8 ? [...names.slice(0, 7), `${names.length - 7} more`] : names;
  return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}
