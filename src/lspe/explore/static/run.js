// What the run behind the page makes of a molecule: its prediction, why, and its positions from layer to layer.

import { post } from "./api.js";
import { HeatmapView, list, short } from "./heatmap.js";
import { MoleculeView } from "./molecule.js";
import { StepSlider } from "./steps.js";
import { WhyView, inUnits } from "./why.js";

// fill in the prediction of a panel's molecule, what explains it, and the positions
export async function showRun(panel, about, signal) {
  if (!panel.graph.is_molecule) return;
  const place = panel.article.querySelector(".prediction");
  const question = { smiles: panel.graph.title };
  place.textContent = `${about.name} predicts …`;
  place.hidden = false;
  try {
    const { values } = await post("/api/predict", question, signal);
    place.replaceChildren(...values.map((value) => predicted(value, about)));
    const why = new WhyView(panel.article, about);
    why.show(await post("/api/explain", question, signal));
    panel.why = why;
    if (!about.learns_positions) return;
    const positions = await post("/api/positions", question, signal);
    panel.positions = new PositionsView(panel.article, positions, about.name);
  } catch (error) {
    if (error.name === "AbortError") return;
    panel.article.querySelector(".why")?.remove();
    place.textContent = `${about.name}: ${error.message}`;
  }
}

function predicted({ name, value, sd, low, high }, about) {
  const part = document.createElement("span");
  const number = document.createElement("strong");
  number.textContent = inUnits(value, about);
  part.append(`${name} `, number);
  if (sd !== null) part.append(` ± ${inUnits(sd, about, 2)}`);
  if (low !== null) part.append(` · 90 %: ${inUnits(low, about, 3)} to ${inUnits(high, about, 3)}`);
  return part;
}

class PositionsView {
  constructor(article, positions, name) {
    this.positions = positions;
    const part = document.getElementById("positions").content.firstElementChild.cloneNode(true);
    article.append(part);
    this.readout = part.querySelector(".readout");
    part.querySelector("h3").append(` · ${name}`);
    const onActive = (node) => this.light(node);
    const all = positions.layers.flat(2);
    const first = positions.layers.flat().map((atom) => atom[0]);
    [this.low, this.high] = [Math.min(...first), Math.max(...first)];
    const last = positions.layers.at(-1);
    const names = positions.nodes.map(({ label }, i) => `${label} ${i + 1}`);
    this.molecule = new MoleculeView(part.querySelector(".molecule"), `Learned positions of ${positions.title}`, positions, onActive);
    this.heatmap = new HeatmapView(part.querySelector(".heat"), {
      title: `Learned positions of ${positions.title} as a heat map`,
      names,
      order: names.map((_, i) => i).sort((a, b) => last[a][0] - last[b][0] || a - b),
      heads: last[0].map((_, component) => String(component + 1)),
      low: Math.min(...all, -1e-9),
      high: Math.max(...all),
    }, onActive);
    const kept = Math.round(100 * positions.explained);
    part.querySelector(".kept").textContent =
      `Columns: principal components of how p differs between the atoms, over all layers (${kept} % of the variance). Colours: the first of them. Bars: how far atoms move in each layer, relative to the size of p.`;
    this.slider = new StepSlider(part.querySelector(".steps"), 0, () => this.paint());
    const most = Math.max(...positions.change, 1e-9);
    this.slider.slider.max = String(positions.layers.length - 1);
    this.slider.value = positions.layers.length - 1;
    this.slider.show([0, ...positions.change.map((change) => change / most)]);
    this.paint();
  }

  paint() {
    const layer = this.slider.value;
    const values = this.positions.layers[layer];
    const span = this.high - this.low;
    this.descriptions = this.positions.nodes.map(({ label }, i) => ({
      t: span > 1e-9 ? (values[i][0] - this.low) / span : 0.5,
      text: null,
      words: `atom ${i + 1} (${label}), layer ${layer}`,
    }));
    this.molecule.paint(this.descriptions);
    this.heatmap.paint(values, this.descriptions);
    const moved = layer === 0 ? "the embedded encoding" : `atoms moved by ${short(100 * this.positions.change[layer - 1])} % of the size of p`;
    this.slider.slider.setAttribute("aria-valuetext", `layer ${layer}: ${moved}`);
  }

  light(node) {
    const isSame = node === null ? null : (other) => other === node;
    this.molecule.light(isSame, node);
    this.heatmap.light(isSame, node);
    this.readout.textContent = node === null ? "" : `${this.descriptions[node].words}: ${list(this.positions.layers[this.slider.value][node])}`;
  }
}
