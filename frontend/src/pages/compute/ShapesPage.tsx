/** Every op by its input shapes and by the line that calls it. */
import type { TableSection, ToolAnswer } from "../../api";
import { CATEGORY_COLOUR, categoryOf } from "../../design/colours";
import { duration, percent } from "../../format";
import { findInTimeline } from "../../links";
import { shapesText, shortPath } from "../../names";
import { route } from "../../router";
import { tableOf } from "../../sections";
import { fact } from "../../session";
import type { TableData } from "../../table/model";
import { RankedCard, type RankedRow } from "../shared/Bars";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import type { Row } from "../shared/reports";
import { TableCard } from "../shared/sections";

const MOST_BARS = 10;

export default function Shapes({ report, sections }: ToolAnswer<"op-shapes">) {
  const by = route.value.params.by === "line" ? "line" : "shape";
  const ops: readonly Row[] = (by === "shape" ? report.rows : report.lines) ?? [];
  const isOfHost = !wholeOf(ops, "device_self_us") || (by === "line" && OF_HOST.includes(fact("cause")));
  const isSampled = by === "line" && isOfHost && (report.statements ?? []).length > 0;
  const rows: readonly Row[] = isSampled ? (report.statements ?? []) : ops;
  const table: TableSection = tableOf(sections, isSampled ? "statements" : by === "shape" ? "rows" : "lines");
  const measure = isSampled ? "self_us" : isOfHost ? "host_self_us" : "device_self_us";
  const isPlaced = by === "shape" || isSampled;
  const placeless: readonly Row[] = isPlaced ? [] : (report.call_sites ?? []).filter((row) => !row.call_site);
  const others = (["functions", "statements", "lines", "call_sites"] as const)
    .filter((id) => by === "line" && id !== table.id && (report[id] ?? []).length > 0)
    .map((id) => {
      const card = <TableCard section={tableOf(sections, id)} id={IDS[id] ?? id} texts={TEXTS} complete={namesAll} />;
      return id === "functions" ? (
        card
      ) : (
        <More title={tableOf(sections, id).title} tables={[IDS[id] ?? id]} children={card} />
      );
    });
  return (
    <>
      <Findings lines={largestOf(rows, placeless, by, measure)} />
      {Object.keys(route.value.params).some((name) => name.startsWith("functions.")) && others.shift()}
      <Largest rows={rows} placeless={placeless} table={table} by={by} measure={measure} />
      <TableCard
        key={table.id}
        section={table}
        id={IDS[table.id] ?? table.id}
        main
        columns={usual(table)}
        texts={TEXTS}
        complete={namesAll}
      />
      {others}
    </>
  );
}

/** Of tables in the address. */
const IDS: Readonly<Record<string, string>> = { rows: "shapes", call_sites: "sites" };
const NO_LINE = "no line recorded";

/** What no line is recorded for is a row that says so. */
function namesAll(data: TableData): TableData {
  const sites = data.columns.call_site?.map((site) => site || NO_LINE);
  return sites ? { ...data, columns: { ...data.columns, call_site: sites } } : data;
}

const IN_WORDS = {
  self_us: "of the loop's thread",
  host_self_us: "that ops take on the host",
  device_self_us: "that devices work",
};
type Measure = keyof typeof IN_WORDS;
/** Causes in which the host works, or lets the device wait: its time by line says more than the device's. */
const OF_HOST: readonly unknown[] = ["input", "python", "host_compute", "launch", "sync", "checkpoint", "compile"];

function wholeOf(rows: readonly Row[], measure: Measure): number {
  return rows.reduce((sum, each) => sum + Number(each[measure] ?? 0), 0);
}

/** Samples are shares of all the time of their thread, ops of that of all ops. */
const shareOf = (row: Row, rows: readonly Row[], measure: Measure) =>
  Number(row.self_percent ?? (100 * Number(row[measure] ?? 0)) / (wholeOf(rows, measure) || 1));

/** The share of a row, and of what: `32 % of the 12 ms that devices work`. */
function sayShare(row: Row, all: readonly Row[], measure: Measure): string {
  const share = shareOf(row, all, measure);
  const whole = row.self_percent ? (100 * Number(row[measure])) / share : wholeOf(all, measure);
  return `${percent(share)} of the ${duration(whole / 1e3)} ${IN_WORDS[measure]}`;
}

/** The largest share, and where; empty where nothing ran. */
function largestOf(rows: readonly Row[], placeless: readonly Row[], by: "shape" | "line", measure: Measure): string[] {
  const named = rows.filter((row) => by === "shape" || row.call_site);
  const largest = [...named].sort((a, b) => Number(b[measure]) - Number(a[measure]))[0];
  if (!largest || !(Number(largest[measure]) > 0)) return [];
  const name = by === "line" ? shortPath(String(largest.call_site)) : String(largest.name);
  const rest = by === "line" ? rows.find((row) => !row.call_site) : undefined;
  const place = by === "shape" ? shapesText(String(largest.input_shapes ?? "")) : "";
  return [
    `\`${name}\` takes ${sayShare(largest, rows, measure)}`,
    ...(rest && Number(rest[measure]) > 0 ? [restText(rest, rows, placeless, measure)] : []),
    ...(place ? [`on ${place}`] : []),
  ];
}

/** How much has no line, the longest ops of that, and how much of it no op is known of. */
function restText(rest: Row, rows: readonly Row[], placeless: readonly Row[], measure: Measure): string {
  const us = (each: Row) => Number(each[measure]);
  const most = [...placeless].sort((a, b) => us(b) - us(a)).slice(0, 2);
  const ops = most.filter((each) => us(each) > 0.05 * us(rest));
  const named = ops.map((each) => `\`${each.name}\` (${duration(us(each) / 1e3)})`);
  const unknown = us(rest) - wholeOf(placeless, measure);
  const parts = [...named, ...(unknown > 0.05 * us(rest) ? [`work of no known op (${duration(unknown / 1e3)})`] : [])];
  return `${sayShare(rest, rows, measure)} has no line${parts.length ? `: ${parts.join(", ")}` : ""}`;
}

const TEXTS = { input_shapes: shapesText };
const OF_DEVICES = ["device_total_us", "device_self_us", "avg_device_us"];
const IN_DETAILS = ["input_types", "self_percent", "host_total_us", "device_total_us"];

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

interface LargestProps {
  rows: readonly Row[];
  /** Ops that no line is known of: bars beside those of lines. */
  placeless: readonly Row[];
  table: TableSection;
  by: "shape" | "line";
  measure: Measure;
}

function Largest({ rows, placeless, table, by, measure }: LargestProps) {
  const field = table.fields.find((each) => each.name === measure);
  const listed = by === "shape" ? rows : [...rows.filter((row) => row.call_site), ...placeless];
  const named = listed.filter((row) => Number(row[measure]) > 0);
  const largest = named.sort((a, b) => Number(b[measure]) - Number(a[measure])).slice(0, MOST_BARS);
  if (!field || !largest.length) return null;
  const shown = largest.reduce((sum, row) => sum + shareOf(row, rows, measure), 0);
  return (
    <RankedCard
      title={measure === "device_self_us" ? "Longest on devices" : "Longest on the host"}
      note="self time; each leads to its calls in the timeline"
      field={field}
      rows={largest.map((row, index) => bar(row, index, measure, by, shareOf(row, rows, measure)))}
      rest={{ count: listed.length - largest.length, percent: 100 - shown }}
    />
  );
}

function bar(row: Row, index: number, measure: Measure, by: "shape" | "line", share: number): RankedRow {
  const onDevice = measure === "device_self_us";
  const name = row.call_site ? shortPath(String(row.call_site)) : String(row.name);
  return {
    key: String(index),
    label: name,
    note: by === "shape" ? shapesText(String(row.input_shapes ?? "")) : row.call_site ? null : NO_LINE,
    ms: Number(row[measure]) / 1e3,
    percent: share,
    colour: CATEGORY_COLOUR[categoryOf(name, onDevice ? "device" : "host")],
    // Samples are named by function, and calls by their line.
    href: findInTimeline(String(row.call_site ?? row.name).replace(measure === "self_us" ? /^.*: / : "", "")),
  };
}
