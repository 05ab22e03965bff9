// Colours that colour-blind people can tell apart: viridis for kinds, one-hue ramps for sizes.

const VIRIDIS = ["#482374", "#404688", "#33638d", "#287d8e", "#1f968b", "#29af7f", "#56c667", "#94d840", "#dce319", "#fde725"];
const SIZES = {
  light: ["#f1f5f9", "#c9dcec", "#8fbbdc", "#4f93c6", "#2069a8", "#0b3f7a"],
  dark: ["#1d2731", "#27445a", "#2f6a86", "#3f97a8", "#7cc7b5", "#e3f3b6"],
};
const SIGNS = {
  light: ["#8a3b00", "#d98038", "#f1f5f9", "#4f93c6", "#0b3f7a"],
  dark: ["#ffb27a", "#b36a2e", "#1d2731", "#3f8fc0", "#a8dcff"],
};

function channels(hex) {
  return [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
}

function along(stops, t) {
  const place = Math.min(Math.max(t, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  const [from, to] = [channels(stops[low]), channels(stops[low + 1])];
  return from.map((value, i) => Math.round(value + (to[i] - value) * (place - low)));
}

function css(rgb) {
  return `rgb(${rgb.join(" ")})`;
}

export function kindColour(t) {
  const rgb = along(VIRIDIS, t);
  const [red, green, blue] = rgb.map((value) => (value / 255) ** 2.2);
  const isLight = 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.26;
  return { fill: css(rgb), ink: isLight ? "#14202b" : "#ffffff" };
}

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// the colour of a value between low and high; zero is in the middle where low is negative
export function valueColour(value, low, high) {
  const theme = isDark() ? "dark" : "light";
  if (low < 0) {
    const most = Math.max(-low, high) || 1;
    return css(along(SIGNS[theme], (value / most + 1) / 2));
  }
  return css(along(SIZES[theme], high > 0 ? value / high : 0));
}

// vermilion for what raises a prediction, blue for what lowers it, the fainter the less
export function pushColour(value, most) {
  const [raises, lowers] = isDark() ? ["240 130 50", "70 165 230"] : ["213 94 0", "0 114 178"];
  const strength = most > 0 ? Math.abs(value) / most : 0;
  return `rgb(${value > 0 ? raises : lowers} / ${(0.85 * strength).toFixed(3)})`;
}
