// Why the run predicts what it does: what each atom and bond adds, and the nearest molecules it was trained on.

import { pushColour } from "./colours.js";
import { MoleculeView, drawStill } from "./molecule.js";

// a value as the run gives it: in its unit, or as a probability in percent
export function inUnits(value, about, digits = 4) {
  const text = about.task === "regression" ? String(Number(value.toPrecision(digits))) : `${Number((100 * value).toFixed(1))} %`;
  return text.replace("-", "−");
}

export class WhyView {
  // a place in the article that says that the explanation is coming
  constructor(article, about) {
    this.about = about;
    this.part = document.getElementById("why").content.firstElementChild.cloneNode(true);
    article.querySelector(".prediction").after(this.part);
    this.readout = this.part.querySelector(".readout");
  }

  show(explained) {
    this.explained = explained;
    const choice = this.part.querySelector("select");
    choice.replaceChildren(...explained.values.map(({ name }, i) => new Option(name, String(i))));
    choice.hidden = explained.values.length < 2;
    if (this.about.task === "multiclass") choice.value = String(likeliest(explained.values));
    choice.addEventListener("change", () => this.paint());
    this.molecule = new MoleculeView(
      this.part.querySelector(".molecule"),
      `What each atom of ${explained.title} adds`,
      explained,
      (node) => this.light(node),
    );
    this.part.querySelector(".views .hint").textContent = legend(explained);
    this.part.querySelector(".waits").hidden = true;
    this.part.querySelector(".views").hidden = false;
    this.part.querySelector(".nearest").hidden = explained.near.length === 0;
    this.part.querySelector(".near").replaceChildren(...explained.near.map((one) => this.neighbour(one)));
    this.paint();
  }

  paint() {
    const value = this.explained.values[this.part.querySelector("select").value];
    const most = Math.max(...[...value.atoms, ...value.bonds].map(Math.abs));
    this.descriptions = this.explained.nodes.map(({ label }, i) => ({
      fill: pushColour(value.atoms[i], most),
      text: null,
      words: `atom ${i + 1} (${label}) adds ${this.signed(value.atoms[i])}, ${this.signed(value.positions[i])} of it by its position`,
    }));
    this.molecule.paint(this.descriptions);
    this.molecule.paintBonds(value.bonds.map((bond) => pushColour(bond, most)));
    const rows = [...value.parts.map(({ name, value: part }, i) => [name, part, i > 0]), [value.name, value.value, false]];
    this.part.querySelector(".parts").replaceChildren(...rows.map(([name, part, adds]) => this.row(name, part, adds)));
  }

  row(name, value, adds) {
    const row = document.createElement("tr");
    row.insertCell().textContent = name;
    const cell = row.insertCell();
    cell.textContent = adds ? this.signed(value) : inUnits(value, this.about, 3);
    if (adds) cell.className = value > 0 ? "raises" : "lowers";
    return row;
  }

  signed(value) {
    return `${value > 0 ? "+" : ""}${inUnits(value, this.about, 2)}`;
  }

  light(node) {
    this.molecule.light(node === null ? null : (other) => other === node, node);
    const words = node === null ? "" : this.descriptions[node].words;
    this.readout.textContent = words && words[0].toUpperCase() + words.slice(1);
  }

  neighbour(one) {
    const card = document.createElement("button");
    card.type = "button";
    card.dataset.smiles = one.smiles;
    card.title = one.smiles;
    const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    drawStill(picture, one.name || one.smiles, one);
    const known = document.createElement("strong");
    known.textContent = one.labels.map(({ name, value }) => `${name} ${told(value)}`).join(", ");
    const name = document.createElement("span");
    name.textContent = one.name;
    const alike = document.createElement("span");
    alike.textContent = `Tanimoto ${one.tanimoto.toFixed(2)}, learned ${one.learned.toFixed(2)}`.replace("-", "−");
    card.append(picture, known, name, alike);
    return card;
  }
}

function told(value) {
  if (value === null) return "unknown";
  return typeof value === "number" ? String(Number(value.toPrecision(4))).replace("-", "−") : value;
}

function likeliest(values) {
  return values.reduce((best, { value }, i) => (value > values[best].value ? i : best), 0);
}

function legend({ networks }) {
  const share = networks < 0.9995 ? ` Atoms and bonds are the networks' part (${Math.round(100 * networks)} %); a forest, which has the rest, looks at no single atom.` : "";
  return `Vermilion atoms and bonds raise the value, blue ones lower it, the stronger the more.${share}`;
}
