/** Terms of the reports in the words of the page; names out of a trace stay as they are. */
import { CATEGORY_LABEL, isCategory } from "./design/colours";
import { words } from "./format";

/** Columns whose values are terms; in others a value like these is the name of an op. */
const OF_TERMS = /^(bottleneck|part|category|cause|extra|waits_for|reason|verdict|level|largest)$/;

/** Terms beside the categories of step time; a category may as well be the type of an op, which nothing is done to. */
const TERMS = new Set([
  ...["device_communication", "device_copy", "kernel_gap", "launch_delay", "host_communication", "device_wait"],
  ...["read_on_demand", "read_in_advance", "host_wait", "kernel_wait", "between_steps"],
]);

/** `device_compute` as `Device compute`, as the legends call it. */
export function termText(value: string): string {
  if (isCategory(value)) return CATEGORY_LABEL[value];
  const text = words(value);
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** How the values of a column are written, if they are terms. */
export function termsOf(column: string): ((value: string) => string) | null {
  return OF_TERMS.test(column) ? (value) => (isCategory(value) || TERMS.has(value) ? termText(value) : value) : null;
}
