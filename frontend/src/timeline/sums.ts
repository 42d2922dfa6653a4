/** The sums of a selection as text, for a spreadsheet. */
import type { SelectionRow } from "./wire";

const PS_A_US = 1e6;

/** The rows of a selection as text: one line per row, tabs between columns. */
export function rowsAsText(rows: readonly SelectionRow[]): string {
  const lines = rows.map((row) => [
    row.name.replace(/\s+/g, " "),
    row.events,
    row.total_ps / PS_A_US,
    row.self_ps / PS_A_US,
  ]);
  return [["name", "events", "total_us", "self_us"], ...lines].map((line) => line.join("\t")).join("\n");
}
