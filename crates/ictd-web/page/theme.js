// Light and dark: what the system says, unless the reader chose.

import { redraw } from "ictd/state";

const system = matchMedia("(prefers-color-scheme: dark)");
let chosen = null;

try {
  chosen = localStorage.getItem("ictd.theme");
} catch {
  // A page opened from disk may have no storage; the system's choice is then all there is.
}

/** Whether the page is dark now. */
export const dark = () => (chosen ? chosen === "dark" : system.matches);

function apply() {
  document.documentElement.style.colorScheme = dark() ? "dark" : "light";
  redraw();
}

/** Changes from one to the other, and keeps the choice. */
export function toggle() {
  chosen = dark() ? "light" : "dark";
  try {
    localStorage.setItem("ictd.theme", chosen);
  } catch {
    // As above: the choice then lasts as long as the page.
  }
  apply();
}

system.addEventListener("change", apply);
apply();
