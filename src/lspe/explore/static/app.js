// The page: what is asked, what is shown, and the address that brings it back.

import { get, post } from "./api.js";
import { Panel } from "./panel.js";
import { showRun } from "./run.js";
import { StepSlider } from "./steps.js";
import { startTheme } from "./theme.js";

const by = (id) => document.getElementById(id);
const all = (selector) => [...document.querySelectorAll(selector)];
const steps = new StepSlider(by("steps"), 1, () => paint());
const state = { panels: [], mark: null, question: null, run: null, kinds: [] };
let running = null;

function chosen(name) {
  return document.querySelector(`input[name="${name}"]:checked`).value;
}

function encoding() {
  return state.kinds.find(({ name }) => name === by("encoding").value);
}

function complain(words) {
  by("problem").textContent = words;
  by("problem").hidden = !words;
  const fields = ["first", "second"].map(by).filter((field) => field.value.trim() || field.id === "first");
  const named = fields.filter((field) => field.value.trim() && words.includes(field.value.trim()));
  for (const field of ["first", "second"].map(by)) {
    const isWrong = words && (named.length ? named : fields).includes(field);
    field.setAttribute("aria-invalid", String(Boolean(isWrong)));
  }
}

// ask the server for what the fields say and show it, at step k if one is given
async function show(k = null) {
  const [first, second] = [by("first").value.trim(), by("second").value.trim()];
  if (!first) {
    complain("Type a SMILES first, or choose an example.");
    by("first").focus();
    return;
  }
  running?.abort();
  const { signal } = (running = new AbortController());
  document.body.classList.add("busy");
  try {
    offerEncodings(Boolean(second));
    const { name } = encoding();
    const comparison = second ? await post("/api/compare", { first, second, encoding: name, elements: by("elements").checked }, signal) : null;
    const graphs = comparison
      ? [comparison.first, comparison.second]
      : [await post("/api/encode", { graph: first, encoding: name, origin: originFor(first) }, signal)];
    complain("");
    state.question = { first, second };
    display(graphs, comparison, k);
    document.body.classList.remove("busy");
    if (state.run) await Promise.all(state.panels.map((panel) => showRun(panel, state.run, signal)));
  } catch (error) {
    if (error.name === "AbortError") return;
    document.body.classList.remove("busy");
    complain(error.message);
  }
}

// two graphs are shown side by side only by encodings that mean the same in both
function offerEncodings(isPair) {
  for (const option of by("encoding").options) {
    option.disabled = isPair && !state.kinds.find(({ name }) => name === option.value).comparable;
    if (option.disabled && option.selected) by("encoding").value = state.kinds[0].name;
  }
}

// the node that pairs are seen from; another graph is seen from its first one
function originFor(first) {
  if (encoding().level !== "pair" || first !== state.question?.first) by("origin").value = "1";
  return Math.max(1, Number.parseInt(by("origin").value, 10) || 1) - 1;
}

function display(graphs, comparison, k) {
  const last = graphs[0].kinds.length;
  const { name, level, columns } = encoding();
  state.mark = comparison?.encodings[name] || null;
  state.panels = graphs.map((graph) => new Panel(graph, light));
  by("panels").replaceChildren(...state.panels.map((panel) => panel.article));
  by("panels").dataset.count = String(graphs.length);
  by("control").hidden = by("hint").hidden = false;
  by("verdict").hidden = !comparison;
  by("elements-choice").hidden = !comparison || !graphs.every((graph) => graph.is_molecule);
  by("origin-choice").hidden = level !== "pair";
  by("origin-choice").querySelector("span").textContent = graphs[0].is_molecule ? "atom" : "node";
  by("origin").max = String(graphs[0].nodes.length);
  if (comparison) {
    by("summary").textContent = comparison.summary;
    tell(by("walk"), comparison.random_walk);
    tell(by("refinement"), comparison.weisfeiler_lehman);
    tellEncodings(by("encodings"), comparison.encodings);
  }
  by("k-label").textContent = columns[0].toUpperCase() + columns.slice(1);
  steps.slider.max = String(last);
  steps.value = Math.min(k ?? state.mark ?? last, last);
  paint();
}

function tell(place, { step }) {
  const words = { null: "cannot tell them apart", 0: "different at once" };
  place.textContent = words[step] ?? `different from step ${step} on`;
  place.dataset.differs = String(step !== null);
}

function tellEncodings(place, columns) {
  const telling = state.kinds.filter(({ name }) => columns[name] !== null && columns[name] !== undefined);
  place.textContent = telling.map(({ name }) => (columns[name] ? `${name} (${columns[name]})` : name)).join(", ") || "none";
  place.title = "in brackets the first column that differs";
  place.dataset.differs = String(telling.length > 0);
}

// each kind gets the middle of its nodes in the order of all, so colours stay near when a kind splits
function scaleAt(k) {
  const kinds = state.panels.flatMap((panel) => panel.graph.kinds[k - 1]).sort((a, b) => a - b);
  const middle = (kind) => (kinds.indexOf(kind) + kinds.lastIndexOf(kind)) / 2;
  return (kind) => (kinds.length > 1 ? middle(kind) / (kinds.length - 1) : 0.5);
}

function paint() {
  if (!state.panels.length) return;
  const k = steps.value;
  const scale = scaleAt(k);
  for (const panel of state.panels) {
    panel.paint(k, chosen("labels"), scale);
    panel.why?.paint();
    panel.positions?.paint();
  }
  const counts = state.panels[0].graph.kinds.map((_, step) => new Set(state.panels.flatMap((panel) => panel.graph.kinds[step])).size);
  const total = state.panels.reduce((sum, panel) => sum + panel.graph.nodes.length, 0);
  steps.show(counts.map((count) => count / total), state.mark, "differ");
  by("told").textContent = inWords(counts, k, total);
  steps.slider.setAttribute("aria-valuetext", `${k}: ${by("told").textContent}`);
  remember(k);
}

function inWords(counts, k, total) {
  const count = counts[k - 1];
  const since = counts.indexOf(count) + 1;
  const where = state.panels.length > 1 ? " in both together" : "";
  const unchanged = since < k ? `, unchanged since k = ${since}` : "";
  return `${count} distinct encoding${count === 1 ? "" : "s"} among ${total}${where}${unchanged}.`;
}

function remember(k) {
  const { first, second } = state.question;
  history.replaceState(null, "", `#${new URLSearchParams(second ? { first, second, k } : { first, k })}`);
}

function light(kind, source) {
  for (const panel of state.panels) {
    if (panel !== source) panel.active = null;
    panel.light(kind);
  }
}

// a molecule of the training set takes the place of the one that it is near to
function follow(event) {
  const near = event.target.closest("[data-smiles]");
  if (!near) return;
  by("first").value = near.dataset.smiles;
  by("second").value = "";
  show();
  scrollTo({ top: 0 });
}

function exampleChip({ title, first, second, about }) {
  const chip = document.createElement("button");
  Object.assign(chip, { type: "button", className: "chip", textContent: title, title: about });
  chip.addEventListener("click", () => {
    by("first").value = first;
    by("second").value = second || "";
    show();
  });
  return chip;
}

function listen() {
  by("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    show();
  });
  all('input[name="labels"]').forEach((radio) => radio.addEventListener("change", paint));
  by("panels").addEventListener("click", follow);
  by("encoding").addEventListener("change", () => show());
  by("origin").addEventListener("change", () => show(steps.value));
  by("elements").addEventListener("change", () => show());
}

async function start() {
  startTheme(paint);
  listen();
  try {
    const [examples, about, kinds] = await Promise.all([get("/api/examples"), get("/api/about"), get("/api/kinds")]);
    state.kinds = kinds;
    by("encoding").replaceChildren(...kinds.map(({ name, title }) => new Option(title, name)));
    state.run = about.run;
    by("run").textContent = about.run ? `run ${about.run.name}` : "";
    by("run").hidden = !about.run;
    by("examples").replaceChildren(...examples.map(exampleChip));
    const asked = new URLSearchParams(location.hash.slice(1));
    by("first").value = asked.get("first") || examples[0].first;
    by("second").value = asked.get("second") || "";
    const k = Number.parseInt(asked.get("k"), 10);
    await show(k >= 1 ? k : null);
  } catch (error) {
    document.body.classList.remove("busy");
    complain(error.message);
  }
}

start();
