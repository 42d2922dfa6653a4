/** True if the reader's system asks for less motion. */
export const calm = typeof window !== "undefined" && window.matchMedia("(prefers-reduced-motion: reduce)").matches;
