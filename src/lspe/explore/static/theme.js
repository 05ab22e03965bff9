// Light or dark: as the system says, until the button is pressed.

import { isDark } from "./colours.js";

export function startTheme(onChange) {
  const button = document.getElementById("theme");
  try {
    const kept = localStorage.getItem("theme");
    if (kept) document.documentElement.dataset.theme = kept;
  } catch { /* storage may be switched off */ }
  const show = () => {
    button.setAttribute("aria-pressed", String(isDark()));
    onChange();
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("theme", document.documentElement.dataset.theme);
    } catch { /* storage may be switched off */ }
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}
