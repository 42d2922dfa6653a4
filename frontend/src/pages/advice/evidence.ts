/** Links from the evidence of an item of advice to the same rows on the tools' pages. */
import { CATEGORY_LABEL, isCategory, isCause } from "../../design/colours";
import { linkTo } from "../../router";
import type { EvidenceRow } from "../shared/reports";

/** The table and the column in which a tool's page has the key of a row. */
const PLACES: Readonly<Record<string, readonly [table: string, column: string]>> = {
  "op-stats": ["ops", "name"],
  "kernel-stats": ["kernels", "kernel"],
  "input-pipeline": ["ops", "op"],
  "pod-viewer": ["rows", "host"],
  syncs: ["syncs", "call"],
  modules: ["modules", "module"],
};

/** The address parameters that show a row on its tool's page. */
function parametersOf({ tool, key }: EvidenceRow): Record<string, string> {
  if (tool === "steps") return isCause(key) ? { "steps.sort": `-${key}_ms` } : {};
  const [table, column] = PLACES[tool] ?? [];
  return table ? { [`${table}.filter`]: `${column}="${key.replaceAll('"', "")}"` } : {};
}

export function evidenceLink(row: EvidenceRow): string {
  return linkTo(row.tool, parametersOf(row));
}

/** The row's name on its page. */
export function evidenceName(row: EvidenceRow): string {
  return isCategory(row.key) ? CATEGORY_LABEL[row.key] : row.key;
}
