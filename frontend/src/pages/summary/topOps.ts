/** Chooses the table of top ops or of top op types. */
import type { TableSection } from "../../api";
import { fact } from "../../session";
import type { OverviewReport } from "../shared/reports";

/** Times of several devices at once are longer than the capture; empty where there is one device. */
export function ofAllDevices(): string {
  const used = Number(fact("devices_used") ?? fact("device_count") ?? 0);
  return used > 1 ? `sum of ${used} devices, as in the table` : "";
}

/** Of all op time: where no op takes as much, the types tell more than the ops. */
export const TELLING_PERCENT = 5;
const OF_TYPES: readonly string[] = ["category", "self_time_ms", "self_percent", "calls"];

/** The op types, where no single op takes much: unrolled layers and many devices have hundreds alike. */
export function tellingTypes(
  report: Pick<OverviewReport, "top_ops" | "top_op_types">,
  ops: TableSection | null,
): TableSection | null {
  const first = report.top_ops[0]?.self_percent;
  const rows = report.top_op_types ?? [];
  if (!ops || typeof first !== "number" || first >= TELLING_PERCENT || !rows.length) return null;
  const fields = ops.fields.filter((field) => OF_TYPES.includes(field.name));
  return {
    ...ops,
    title: "Top op types",
    key: "top_op_types",
    fields,
    row_count: rows.length,
    columns: Object.fromEntries(fields.map((field) => [field.name, rows.map((row) => row[field.name] ?? null)])),
  };
}
