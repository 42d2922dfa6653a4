/** Whether the window is that of a phone, which has room for the few columns of a table that say most. */
import { signal } from "@preact/signals";

export const narrow = signal(false);

if (typeof window !== "undefined") {
  const query = window.matchMedia("(max-width: 720px)");
  narrow.value = query.matches;
  query.addEventListener("change", () => {
    narrow.value = query.matches;
  });
}
