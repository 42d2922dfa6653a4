/** Light or dark: what the system prefers until the reader chooses. */
import { computed, effect, signal } from "@preact/signals";
import { remember, remembered } from "../storage";
import { PALETTES } from "./colours";

export type Theme = "light" | "dark";

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const system = signal<Theme>(dark.matches ? "dark" : "light");
dark.addEventListener("change", (event) => {
  system.value = event.matches ? "dark" : "light";
});

/** Paper is light, and the page keeps the width that its tables and charts were laid out for. */
const printed = signal(false);
window.addEventListener("beforeprint", () => {
  document.documentElement.style.setProperty("--printed", `${document.getElementById("main")?.clientWidth ?? 0}px`);
  printed.value = true;
});
window.addEventListener("afterprint", () => {
  printed.value = false;
});

const chosen = signal<Theme | null>(asTheme(remembered("theme")));

export const theme = computed<Theme>(() => (printed.value ? "light" : (chosen.value ?? system.value)));
export const palette = computed(() => PALETTES[theme.value]);

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});

export function toggleTheme(): void {
  chooseTheme(theme.value === "dark" ? "light" : "dark");
  remember("theme", chosen.value);
}

export function chooseTheme(next: Theme): void {
  chosen.value = next;
}

function asTheme(value: unknown): Theme | null {
  return value === "light" || value === "dark" ? value : null;
}
