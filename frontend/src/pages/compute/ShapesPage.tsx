/** Every op by its input shapes and by the line that calls it. */
import type { TableSection, ToolAnswer } from "../../api";
import { CATEGORY_COLOUR, categoryOf } from "../../design/colours";
import { percent } from "../../format";
import { findInTimeline } from "../../links";
import { route } from "../../router";
import { tableOf } from "../../sections";
import type { TableData } from "../../table/model";
import { RankedCard, type RankedRow, restOf } from "../shared/Bars";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import { shapesText, shortPath } from "../shared/names";
import type { Row } from "../shared/reports";
import { TableCard } from "../shared/sections";

const MOST_BARS = 10;

export default function Shapes({ report, sections }: ToolAnswer<"op-shapes">) {
  const by = route.value.params.by === "line" ? "line" : "shape";
  const table = tableOf(sections, by === "shape" ? "rows" : "lines");
  const rows: readonly Row[] = (by === "shape" ? report.rows : report.lines) ?? [];
  return (
    <>
      <Findings lines={largestOf(rows, by)} />
      <Largest rows={rows} table={table} by={by} />
      <TableCard
        key={by}
        section={table}
        id={by === "shape" ? "shapes" : "lines"}
        main
        columns={usual(table)}
        texts={TEXTS}
        complete={namesAll}
      />
      {by === "line" && (
        <More title="By op of each line" tables={["sites"]}>
          <TableCard section={tableOf(sections, "call_sites")} id="sites" texts={TEXTS} />
        </More>
      )}
    </>
  );
}

const NO_LINE = "no line recorded";

/** What no line is recorded for is a row that says so. */
function namesAll(data: TableData): TableData {
  const sites = data.columns.call_site?.map((site) => site || NO_LINE);
  return sites ? { ...data, columns: { ...data.columns, call_site: sites } } : data;
}

/** The largest share, and where; empty where nothing ran on a device. */
function largestOf(rows: readonly Row[], by: "shape" | "line"): string[] {
  const named = rows.filter((row) => by === "shape" || row.call_site);
  const largest = [...named].sort((a, b) => Number(b.device_self_us) - Number(a.device_self_us))[0];
  if (!largest || typeof largest.percent !== "number" || !(Number(largest.device_self_us) > 0)) return [];
  if (by === "line") {
    const rest = rows.find((row) => !row.call_site);
    const unknown = rest ? [`no line is recorded for ${percent(Number(rest.percent))}`] : [];
    return [
      `\`${shortPath(String(largest.call_site))}\` takes ${percent(largest.percent)} of the device time`,
      ...unknown,
    ];
  }
  const place = shapesText(String(largest.input_shapes ?? ""));
  return [
    `\`${largest.name}\` takes ${percent(largest.percent)} of the device time`,
    ...(place ? [`on ${place}`] : []),
  ];
}

const TEXTS = { input_shapes: shapesText, call_site: shortPath };
const OF_DEVICES = ["device_total_us", "device_self_us", "avg_device_us"];
const IN_DETAILS = ["input_types", "host_total_us", "device_total_us"];

/** Less used columns are in the row's details; without devices their columns are zeros. */
function usual(table: TableSection): string[] {
  const zero = (name: string) =>
    OF_DEVICES.includes(name) && (table.columns?.[name] ?? [null]).every((value) => value === 0);
  const shown = table.fields.map((field) => field.name).filter((name) => !IN_DETAILS.includes(name) && !zero(name));
  const onDevice = shown.includes("device_self_us");
  return onDevice
    ? shown.flatMap((name) =>
        name === "host_self_us" ? [] : name === "device_self_us" ? [name, "host_self_us"] : [name],
      )
    : shown;
}

function Largest({ rows, table, by }: { rows: readonly Row[]; table: TableSection; by: "shape" | "line" }) {
  const onDevice = rows.some((row) => Number(row.device_self_us) > 0);
  const measure = onDevice ? "device_self_us" : "host_self_us";
  const field = table.fields.find((each) => each.name === measure);
  // What has no line is the last row, however long it is.
  const isNamed = (row: Row) => Number(by === "shape" || Boolean(row.call_site));
  const ranked = [...rows].sort((a, b) => isNamed(b) - isNamed(a) || Number(b[measure]) - Number(a[measure]));
  const unnamed = ranked.filter((row) => !isNamed(row));
  const largest = [...ranked.filter(isNamed).slice(0, MOST_BARS), ...unnamed].filter((row) => Number(row[measure]) > 0);
  if (!field || !largest.length) return null;
  return (
    <RankedCard
      title={onDevice ? "Longest on devices" : "Longest on the host"}
      note="self time; each leads to its calls in the timeline"
      field={field}
      rows={largest.map((row, index) => bar(row, index, measure, by))}
      rest={restOf(rows as readonly { percent?: number }[], largest as readonly { percent?: number }[])}
    />
  );
}

function bar(row: Row, index: number, measure: string, by: "shape" | "line"): RankedRow {
  const onDevice = measure === "device_self_us";
  const site = shortPath(String(row.call_site ?? ""));
  const name = by === "shape" ? String(row.name) : site || NO_LINE;
  return {
    key: String(index),
    label: name,
    note: by === "shape" ? shapesText(String(row.input_shapes ?? "")) : null,
    ms: Number(row[measure]) / 1e3,
    percent: typeof row.percent === "number" ? row.percent : null,
    colour: CATEGORY_COLOUR[by === "line" && !site ? "other" : categoryOf(name, onDevice ? "device" : "host")],
    href: by === "shape" ? findInTimeline(name) : site ? findInTimeline(String(row.call_site)) : null,
  };
}
