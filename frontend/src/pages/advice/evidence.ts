/** Links from the evidence of an item of advice to the same rows on the tools' pages. */
import { CATEGORY_LABEL, isCategory, isCause } from "../../design/colours";
import { linkTo } from "../../router";
import type { EvidenceRow } from "../shared/reports";

const quoted = (column: string, value: string) => `${column}="${value.replaceAll('"', "")}"`;

/** The address parameters that show a row on its tool's page. */
function parametersOf(row: EvidenceRow): Record<string, string> {
  switch (row.tool) {
    case "op-stats":
      return { "ops.filter": quoted("name", row.key) };
    case "kernel-stats":
      return { "kernels.filter": quoted("kernel", row.key) };
    case "input-pipeline":
      return { "ops.filter": quoted("op", row.key) };
    case "steps":
      return isCause(row.key) ? { "steps.sort": `-${row.key}_ms` } : {};
    case "pod-viewer":
      return { "rows.filter": quoted("host", row.key) };
    case "syncs":
      return { "syncs.filter": quoted("call", row.key) };
    case "modules":
      return { "modules.filter": quoted("module", row.key) };
    default:
      return {};
  }
}

export function evidenceLink(row: EvidenceRow): string {
  return linkTo(row.tool, parametersOf(row));
}

/** The row's name on its page. */
export function evidenceName(row: EvidenceRow): string {
  return isCategory(row.key) ? CATEGORY_LABEL[row.key] : row.key;
}
