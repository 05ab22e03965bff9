// A slider over steps, and above it a bar for each.

import { element, set } from "./svg.js";

const THUMB = 20;
const HEIGHT = 46;

export class StepSlider {
  // the part of the page that holds input[type=range], svg.bars and output; steps are numbered from `first` on
  constructor(holder, first, onChange) {
    this.slider = holder.querySelector("input");
    this.bars = holder.querySelector("svg");
    this.output = holder.querySelector("output");
    this.first = first;
    this.heights = [];
    this.slider.addEventListener("input", () => {
      this.draw();
      onChange(this.value);
    });
    new ResizeObserver(() => this.draw()).observe(this.slider);
  }

  get value() {
    return Number(this.slider.value);
  }

  set value(step) {
    this.slider.value = String(step);
  }

  get last() {
    return Number(this.slider.max);
  }

  // heights between 0 and 1, one a step; the step `mark` is named `name`
  show(heights, mark = null, name = "") {
    Object.assign(this, { heights, mark, name });
    set(this.slider, { min: this.first, max: this.first + heights.length - 1 });
    this.draw();
  }

  draw() {
    this.output.textContent = String(this.value);
    const width = this.slider.clientWidth;
    if (!width || !this.heights.length) return;
    set(this.bars, { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT });
    const apart = (width - THUMB) / Math.max(this.heights.length - 1, 1);
    const bar = Math.min(Math.max(apart * 0.62, 3), 18);
    const parts = this.heights.flatMap((height, i) => {
      const step = this.first + i;
      const tall = Math.max(height * (HEIGHT - 16), 2);
      const x = THUMB / 2 + i * apart;
      const state = step === this.value ? "now" : step > this.value ? "off" : "";
      const made = [element("rect", { class: `bar ${state}`, x: x - bar / 2, y: HEIGHT - tall, width: bar, height: tall, rx: 2 })];
      if (step === this.mark) made.push(element("text", { class: "mark", x, y: HEIGHT - tall - 5 }, this.name));
      return made;
    });
    this.bars.replaceChildren(...parts);
  }
}
