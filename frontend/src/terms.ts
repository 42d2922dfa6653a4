/** Terms of the reports in the words of the page; names out of a trace stay as they are. */
import type { Field } from "./api";
import { CATEGORY_LABEL, isCategory } from "./design/colours";
import { words } from "./format";
import { shortPath } from "./names";

/** `device_compute` as `Device compute`, as the legends call it. */
export function termText(value: string): string {
  if (isCategory(value)) return CATEGORY_LABEL[value];
  const text = words(value);
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A Python call, as frameworks name it by file and line; names of ops have slashes of their own. */
const PYTHON = /\.py\(\d+\): /;

/** How the values of a column are written, if they are terms, lines of a program or names. */
export function termsOf(field: Field): ((value: string) => string) | null {
  if (field.role === "name") return (name) => (PYTHON.test(name) ? shortPath(name) : name);
  return field.role === "term" ? termText : field.role === "source" ? shortPath : null;
}
