/** Memory in use over time, and what fills it at its peak. */

import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import type { Report, TableSection, ToolAnswer } from "../../api";
import { Chart } from "../../charts/Chart";
import { MEMORY_COLOUR, type MemoryEvent, memoryOverTime } from "../../charts/memory";
import { palette } from "../../design/theme";
import { bytes, duration, percent } from "../../format";
import { intervalInTimeline } from "../../links";
import { route, setParams } from "../../router";
import { docOf, type Sections, tableOf } from "../../sections";
import { type TableData, toRows } from "../../table/model";
import type { RowLink } from "../../table/RowDetails";
import { Card } from "../../ui/basics";
import { Choice, IconButton, Legend } from "../../ui/controls";
import { Icon } from "../../ui/icons";
import { ParamChoice } from "../../ui/ParamChoice";
import { StackedBars } from "../shared/Bars";
import { More } from "../shared/More";
import { ownRows, useOwnRows } from "../shared/ownRows";
import type { Asked } from "../shared/reports";
import { findLinks, TableCard } from "../shared/sections";
import { HeldBar, RequestBar } from "./HeldBar";
import { mostOf, type Purpose, partsOf, sumsOf } from "./purposes";

const FREE = { out: "In use", in: "With free memory" };

interface Memory {
  readonly id: string;
  readonly host: string;
  readonly allocations: number;
  readonly deallocations: number;
  readonly capacity_bytes: number | null;
  readonly peak_heap_bytes: number | null;
  readonly peak: Readonly<Record<string, number | null>>;
  readonly purposes?: readonly Purpose[];
}

interface MemoryReport extends Report {
  readonly memories?: readonly Memory[];
  /** What was asked for when memory ran out. */
  readonly requests?: readonly Asked[];
}

function keyOf(memory: Memory): string {
  return `${memory.host} ${memory.id}`;
}

export default function MemoryView({ report, sections }: ToolAnswer<"memory-profile", MemoryReport>) {
  const memories = report.memories ?? [];
  const chosen = memories.find((memory) => keyOf(memory) === route.value.params.memory) ?? fullest(memories);
  const counted = <Counted sections={sections} asked={report.requests?.[0]} />;
  if (!chosen) return counted;
  return (
    <>
      {counted}
      <Card title="At the peak" actions={<MemoryPicker memories={memories} chosen={chosen} />}>
        <Peak memory={chosen} meaning={docOf(tableOf(sections, "peak"), "in_use_bytes")} />
      </Card>
      <OverTime memory={chosen} section={tableOf(sections, "timeline")} manyHosts={report.hosts.length > 1} />
      {TABLES.map((each) => (
        <MemoryTable key={each.id} {...each} section={tableOf(sections, each.of)} memory={chosen} />
      ))}
      <More title="All figures of each memory" tables={["memories", "peak"]}>
        <TableCard section={tableOf(sections, "memories")} plain height="all" />
        <TableCard section={tableOf(sections, "peak")} plain height="all" />
      </More>
    </>
  );
}

/** What was counted of the program's arrays: what it held when memory ran out, and what becomes more with each step. */
function Counted({ sections, asked }: { sections: Sections<"memory-profile">; asked: Asked | undefined }) {
  const [full, staying, growth] = [
    tableOf(sections, "full"),
    tableOf(sections, "staying"),
    tableOf(sections, "growth"),
  ];
  const held = full.columns?.holder ?? [];
  // What the table of what was held tells already is told once.
  const grows = growth.columns?.grows?.some((each, row) => each && (!held.length || growth.columns?.last_bytes?.[row]));
  const isToldOf = staying.columns?.op?.every((op) => held.includes(op)) ?? false;
  return (
    <>
      {full.row_count + (asked ? 1 : 0) > 0 && (
        <>
          <Card title="When memory ran out">
            {asked && <RequestBar asked={asked} />}
            {!asked?.is_too_large && full.row_count > 0 && (
              <HeldBar kinds={full.columns?.kind ?? []} sizes={full.columns?.held_bytes ?? []} />
            )}
          </Card>
          {full.row_count > 0 && <TableCard section={full} heading="What held it, by variable and line" plain />}
        </>
      )}
      {grows && <TableCard section={growth} plain />}
      {staying.row_count > 0 && !isToldOf && <TableCard section={staying} />}
    </>
  );
}

interface Declared {
  readonly id: string;
  /** The table of the report that it shows a part of. */
  readonly of: "purposes" | "breakdown" | "timeline";
  readonly title: string;
  readonly empty: string;
  /** What opens it; without, it is always shown. */
  readonly opener?: string;
  readonly links?: (data: TableData, row: number) => RowLink[];
}

/** The tables of a memory, in their order; each without the columns that say which memory it is. */
const TABLES: readonly Declared[] = [
  {
    ...{ id: "purposes", of: "purposes" },
    title: "What fills the memory at its peak, by purpose, layer and line",
    empty: "no known allocation at the peak",
  },
  {
    ...{ id: "breakdown", of: "breakdown", opener: "By op" },
    title: "What fills the memory at its peak, by op",
    empty: "no known allocation at the peak",
  },
  {
    ...{ id: "events", of: "timeline", opener: "Allocations and deallocations" },
    title: "Each in the order of time",
    empty: "no allocation was recorded",
    links: momentLink,
  },
];

interface MemoryTableProps extends Declared {
  section: TableSection;
  memory: Memory;
}

function MemoryTable({ opener, of: _, title, links = () => [], section, memory, ...rest }: MemoryTableProps) {
  const complete = useCallback((data: TableData) => ownRows(data, ownOf(memory)), [memory]);
  const table = (
    <TableCard
      {...{ section, complete, ...rest }}
      heading={title}
      columns={usualOf(section)}
      main={!opener}
      plain={false}
      links={(row, data) => [...links(data, row), ...findLinks(row, data)]}
    />
  );
  return opener ? (
    <More title={opener} tables={[rest.id]}>
      {table}
    </More>
  ) : (
    table
  );
}

/** What a memory is called; TPUs number theirs. */
function nameOf(memory: Memory): string {
  return /^\d+$/.test(memory.id) ? `Memory ${memory.id}` : memory.id;
}

/** The memory to look at first: the one that was used most. */
function fullest(memories: readonly Memory[]): Memory | undefined {
  return [...memories].sort((a, b) => (b.peak.in_use_bytes ?? 0) - (a.peak.in_use_bytes ?? 0))[0];
}

function MemoryPicker({ memories, chosen }: { memories: readonly Memory[]; chosen: Memory }) {
  const hosts = new Set(memories.map((memory) => memory.host)).size;
  return (
    <Choice
      label="Memory"
      value={keyOf(chosen)}
      options={memories.map((each) => [keyOf(each), hosts > 1 ? `${nameOf(each)} on ${each.host}` : nameOf(each)])}
      onChange={(memory) => setParams({ memory }, "push")}
    />
  );
}

/** How full the memory is when it is fullest, and what for. */
function Peak({ memory, meaning }: { memory: Memory; meaning: string }) {
  const look = palette.value;
  const sums = useMemo(() => sumsOf(memory.purposes ?? []), [memory]);
  const parts = useMemo(() => partsOf(sums, look.surface), [sums, look]);
  const { in_use_bytes: inUse, time_ms: at } = memory.peak;
  if (inUse == null) return null;
  const capacity = memory.capacity_bytes;
  const full = capacity ? `${bytes(inUse)} of ${bytes(capacity)} (${percent((100 * inUse) / capacity)})` : bytes(inUse);
  const most = mostOf(sums);
  return (
    <div class="peak">
      <p
        class="verdict-line"
        data-hint-title="In use at the peak"
        data-hint={meaning}
        data-hint-value={`${inUse} bytes`}
        tabIndex={0}
      >
        {`At its peak, ${full} is in use${most ? `: ${most}` : ""}`}
        {at != null && <span class="muted">{`, ${duration(at)} into the capture`}</span>}
        {capacity && 2 * inUse < capacity && <span class="muted">; memory is no limit</span>}
      </p>
      <StackedBars
        label="What the memory in use at the peak is for"
        parts={parts}
        write={bytes}
        unit="bytes"
        rows={[{ key: "peak", label: nameOf(memory), note: "at its peak", parts: Object.fromEntries(sums) }]}
      />
    </div>
  );
}

interface OverTimeProps {
  memory: Memory;
  section: TableSection;
  manyHosts: boolean;
}

function OverTime({ memory, section, manyHosts }: OverTimeProps) {
  const rows = useOwnRows("memory-profile", section, ownOf(memory));
  const events = useMemo(() => (rows.state === "ready" ? toRows<MemoryEvent>(rows.data) : []), [rows]);
  const withFree = route.value.params.free === "in";
  const peak = memory.peak.time_ms ?? null;
  const plot = useMemo(() => memoryOverTime(events, { peak_ms: peak, withFree }), [events, peak, withFree]);
  const [picked, setPicked] = useState<MemoryEvent | null>(null);
  useEffect(() => setPicked(null), [memory]);
  const first = events[0]?.time_ms;
  const last = events.at(-1)?.time_ms;
  if (first === undefined || last === undefined) return null;
  const around = (at: number) =>
    intervalInTimeline(Math.max(0, at - (last - first) / 50), at + (last - first) / 50, manyHosts ? memory.host : null);
  const hasFree = events.some((event) => (event.free_bytes ?? 0) > 0);
  const marks = events.filter((event) => (event.heap_bytes ?? event.in_use_bytes ?? 0) > 0).length;
  return (
    <Card
      title="In use over time"
      note={`${events.length.toLocaleString("en-US")} points from ${duration(first)} to ${duration(last)}`}
      actions={
        <>
          {hasFree && <ParamChoice label="Free memory" name="free" value={withFree ? "in" : "out"} options={FREE} />}
          {peak !== null && (
            <a class="button quiet" href={around(peak)}>
              Peak in the timeline <Icon name="arrow" size={14} />
            </a>
          )}
        </>
      }
    >
      <Chart
        label={`Memory in use of ${nameOf(memory)} over time, at most ${bytes(memory.peak.in_use_bytes ?? 0)}`}
        plot={plot}
        height={320}
        marks={marks}
        onPick={(_, at) => setPicked(nearest(events, at))}
      />
      <div class="graph-foot flex wrap spread above-m minor">
        <MemoryLegend events={events} withFree={withFree} />
        <span class="muted">{picked ? "" : "click a moment to see it in the timeline"}</span>
      </div>
      {picked && (
        <div class="picked" role="status">
          <strong>at {duration(picked.time_ms)}</strong>
          <span>{bytes(picked.in_use_bytes ?? picked.heap_bytes ?? 0)} in use</span>
          {picked.op && <span class="muted">{`${picked.event ?? "event"} of ${picked.op}`}</span>}
          <a class="button" href={around(picked.time_ms)}>
            Show in the timeline <Icon name="arrow" size={16} />
          </a>
          <IconButton icon="close" label="Clear the selection" onClick={() => setPicked(null)} />
        </div>
      )}
    </Card>
  );
}

/** The last event at or before a moment: its state lasts until the next. */
function nearest(events: readonly MemoryEvent[], at: number): MemoryEvent | null {
  return events.findLast((event) => event.time_ms <= at) ?? events[0] ?? null;
}

function MemoryLegend({ events, withFree }: { events: readonly MemoryEvent[]; withFree: boolean }) {
  const has = (key: keyof MemoryEvent) => events.some((event) => Number(event[key] ?? 0) > 0);
  const entries: (readonly [string, string, boolean])[] = [
    ["Stack", MEMORY_COLOUR.stack, has("stack_bytes")],
    ["Heap", MEMORY_COLOUR.heap, true],
    ["Free", MEMORY_COLOUR.free, withFree && has("free_bytes")],
    ["Reserved by the allocator", MEMORY_COLOUR.reserved, has("reserved_bytes")],
    ["Fragmentation, %", MEMORY_COLOUR.fragmentation, withFree && has("fragmentation_percent")],
  ];
  const shown = entries.filter(([, , isShown]) => isShown);
  return <Legend entries={shown.map(([label, colour]) => ({ key: label, label, colour }))} />;
}

function momentLink(data: TableData, row: number): RowLink[] {
  const at = data.columns.time_ms?.[row];
  return typeof at === "number"
    ? [{ label: "Show in the timeline", href: intervalInTimeline(Math.max(0, at - 0.5), at + 0.5) }]
    : [];
}

function ownOf(memory: Memory): Readonly<Record<"memory" | "host", string>> {
  return { memory: memory.id, host: memory.host };
}

function usualOf({ usual, fields }: TableSection): string[] {
  return (usual ?? fields.map((field) => field.name)).filter((name) => name !== "memory" && name !== "host");
}
