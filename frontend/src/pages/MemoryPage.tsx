/** How full a memory is over time, and what fills it at its peak. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { tableTitled, type Cell, type Field, type Report, type Section, type TableSection, type ToolAnswer } from "../api";
import { Chart } from "../charts/Chart";
import { MEMORY_COLOUR, memoryOverTime, type MemoryEvent } from "../charts/memory";
import { palette } from "../design/theme";
import { bytes, duration } from "../format";
import { intervalInTimeline } from "../links";
import { route, setParams } from "../router";
import { fromRows } from "../table/model";
import { Table } from "../table/Table";
import { Card, Code, Figure, Segmented, sentence } from "../ui/basics";
import { Icon } from "../ui/icons";
import { nameLinks } from "./sections";
import { ToolPage } from "./ToolPage";

interface Memory {
  readonly id: string;
  readonly host: string;
  readonly allocations: number;
  readonly deallocations: number;
  readonly capacity_bytes: number | null;
  readonly peak_heap_bytes: number | null;
  readonly peak: Readonly<Record<string, number | null>>;
  readonly timeline: readonly MemoryEvent[];
  readonly breakdown: readonly Readonly<Record<string, Cell>>[];
}

interface MemoryReport extends Report {
  readonly memories?: readonly Memory[];
}

export default function MemoryPage() {
  return <ToolPage<MemoryReport> tool="memory-profile">{(answer) => <MemoryView {...answer} />}</ToolPage>;
}

function keyOf(memory: Memory): string {
  return `${memory.host} ${memory.id}`;
}

function MemoryView({ report, sections }: ToolAnswer<MemoryReport>) {
  const memories = report.memories ?? [];
  const chosen = memories.find((memory) => keyOf(memory) === route.value.params["memory"]) ?? fullest(memories);
  if (!chosen) return null;
  return (
    <>
      <Card title="Memory" actions={<MemoryPicker memories={memories} chosen={chosen} />}>
        <Prose sections={sections} memory={chosen} />
        <PeakFigures memory={chosen} sections={sections} />
      </Card>
      <OverTime memory={chosen} manyHosts={report.hosts.length > 1} />
      <Breakdown memory={chosen} section={tableTitled(sections, "Breakdown")} />
      <Events memory={chosen} section={tableTitled(sections, "Timeline")} />
    </>
  );
}

/** The memory to look at first: the one that was used most. */
function fullest(memories: readonly Memory[]): Memory | undefined {
  return [...memories].sort((a, b) => (b.peak["in_use_bytes"] ?? 0) - (a.peak["in_use_bytes"] ?? 0))[0];
}

function MemoryPicker({ memories, chosen }: { memories: readonly Memory[]; chosen: Memory }) {
  const hosts = new Set(memories.map((memory) => memory.host)).size;
  return (
    <label class="select">
      <span class="muted">Memory</span>
      <select value={keyOf(chosen)} onChange={(event) => setParams({ memory: event.currentTarget.value }, "push")}>
        {memories.map((memory) => (
          <option key={keyOf(memory)} value={keyOf(memory)}>
            {hosts > 1 ? `${memory.id} on ${memory.host}` : memory.id}
          </option>
        ))}
      </select>
    </label>
  );
}

/** What the report says of this memory. */
function Prose({ sections, memory }: { sections: readonly Section[]; memory: Memory }) {
  const peaks = sections.flatMap((section) => (section.kind === "prose" && section.title.startsWith("Peak") ? section.lines : []));
  const starts = [`${memory.id} of ${memory.host}:`, `${memory.id}:`];
  const lines = peaks.filter((line) => starts.some((start) => line.startsWith(start)));
  if (!lines.length) return null;
  return (
    <ul class="prose spaced">
      {lines.map((line) => (
        <li key={line}>
          <Code text={sentence(line)} />
        </li>
      ))}
    </ul>
  );
}

const LABELS: Readonly<Record<string, string>> = {
  allocations: "Allocations",
  deallocations: "Deallocations",
  capacity_bytes: "Capacity",
  peak_heap_bytes: "Peak heap, since the start",
  in_use_bytes: "Peak in this capture",
  time_ms: "Peak at",
  stack_bytes: "Stack at the peak",
  heap_bytes: "Heap at the peak",
  free_bytes: "Free at the peak",
  reserved_bytes: "Reserved at the peak",
  fragmentation_percent: "Fragmentation at the peak",
};

function PeakFigures({ memory, sections }: { memory: Memory; sections: readonly Section[] }) {
  const declared = (title: string, name: string): Field | undefined => tableTitled(sections, title)?.fields.find((each) => each.name === name);
  const field = (name: string): Field => declared("Peak of each", name) ?? declared("Memories", name) ?? { name, unit: "bytes", doc: "", kind: "int" };
  const own = ["allocations", "deallocations", "capacity_bytes", "peak_heap_bytes"] as const;
  const atPeak = ["in_use_bytes", "time_ms", "stack_bytes", "heap_bytes", "free_bytes", "reserved_bytes", "fragmentation_percent"];
  const values = [...own.map((name) => [name, memory[name]] as const), ...atPeak.map((name) => [name, memory.peak[name] ?? null] as const)];
  const unknown = values.filter(([, value]) => value === null).map(([name]) => (LABELS[name] as string).toLowerCase());
  return (
    <>
      <div class="figures">
        {values
          .filter(([, value]) => value !== null)
          .map(([name, value]) => (
            <Figure key={name} field={field(name)} value={value} label={LABELS[name] as string} />
          ))}
      </div>
      {unknown.length > 0 && <p class="muted not-recorded">Not recorded: {unknown.join(", ")}</p>}
    </>
  );
}

function OverTime({ memory, manyHosts }: { memory: Memory; manyHosts: boolean }) {
  const withFree = route.value.params["free"] === "in";
  const look = palette.value;
  const peak = memory.peak["time_ms"] ?? null;
  const option = useMemo(() => memoryOverTime(memory.timeline, { palette: look, peak_ms: peak, withFree }), [memory, look, peak, withFree]);
  const [picked, setPicked] = useState<MemoryEvent | null>(null);
  useEffect(() => setPicked(null), [memory]);
  const first = memory.timeline[0]?.time_ms;
  const last = memory.timeline.at(-1)?.time_ms;
  if (first === undefined || last === undefined) return null;
  const around = (at: number) => intervalInTimeline(Math.max(0, at - (last - first) / 50), at + (last - first) / 50, manyHosts ? memory.host : null);
  const hasFree = memory.timeline.some((event) => event.free_bytes !== null);
  const marks = memory.timeline.filter((event) => (event.heap_bytes ?? event.in_use_bytes ?? 0) > 0).length;
  return (
    <Card
      title="In use over time"
      note={`${memory.timeline.length.toLocaleString("en-US")} points from ${duration(first)} to ${duration(last)}`}
      actions={
        <>
          {hasFree && (
            <Segmented
              label="Free memory"
              value={withFree ? "in" : "out"}
              options={[
                { value: "out", label: "In use" },
                { value: "in", label: "With free" },
              ]}
              onChange={(value) => setParams({ free: value === "in" ? "in" : null })}
            />
          )}
          {peak !== null && (
            <a class="button quiet" href={around(peak)}>
              Peak in the timeline <Icon name="arrow" size={14} />
            </a>
          )}
        </>
      }
    >
      <Chart label={`Memory in use of ${memory.id} over time, at most ${bytes(memory.peak["in_use_bytes"] ?? 0)}`} option={option} height={320} marks={marks} onPoint={(at) => setPicked(nearest(memory.timeline, at))} />
      <div class="graph-foot">
        <MemoryLegend memory={memory} withFree={withFree} />
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
          <button type="button" class="icon-button small" aria-label="Pick nothing" onClick={() => setPicked(null)}>
            <Icon name="close" size={14} />
          </button>
        </div>
      )}
    </Card>
  );
}

/** The last event at or before a moment: its state lasts until the next. */
function nearest(events: readonly MemoryEvent[], at: number): MemoryEvent | null {
  return events.findLast((event) => event.time_ms <= at) ?? events[0] ?? null;
}

function MemoryLegend({ memory, withFree }: { memory: Memory; withFree: boolean }) {
  const has = (key: keyof MemoryEvent) => memory.timeline.some((event) => Number(event[key] ?? 0) > 0);
  const entries: (readonly [string, string, boolean])[] = [
    ["Stack", MEMORY_COLOUR.stack, has("stack_bytes")],
    ["Heap", MEMORY_COLOUR.heap, true],
    ["Free", MEMORY_COLOUR.free, withFree && has("free_bytes")],
    ["Reserved by the allocator", MEMORY_COLOUR.reserved, has("reserved_bytes")],
    ["Fragmentation, %", MEMORY_COLOUR.fragmentation, has("fragmentation_percent")],
  ];
  return (
    <ul class="legend inline">
      {entries
        .filter(([, , shown]) => shown)
        .map(([name, colour]) => (
          <li key={name}>
            <span class="swatch" style={{ background: colour }} />
            {name}
          </li>
        ))}
    </ul>
  );
}

/** The fields that the section declares, for those that the memory's own rows have. */
function ownTable(section: TableSection | null, rows: readonly Readonly<Record<string, Cell>>[]) {
  const first = rows[0];
  const fields = (section?.fields ?? []).filter((field) => !first || field.name in first);
  return fromRows(fields, rows);
}

function Breakdown({ memory, section }: { memory: Memory; section: TableSection | null }) {
  const data = useMemo(() => ownTable(section, memory.breakdown), [section, memory]);
  return (
    <Card title="What fills the memory at its peak" class="table-card">
      <Table id="breakdown" title="What fills the memory at its peak" data={data} empty="no allocation is known at the peak" main links={(row) => nameLinks(data, row)} />
    </Card>
  );
}

function Events({ memory, section }: { memory: Memory; section: TableSection | null }) {
  const data = useMemo(() => ownTable(section, memory.timeline as unknown as readonly Readonly<Record<string, Cell>>[]), [section, memory]);
  return (
    <Card title="Allocations and deallocations" class="table-card">
      <Table
        id="events"
        title="Allocations and deallocations"
        data={data}
        links={(row) => {
          const at = data.columns["time_ms"]?.[row];
          return typeof at === "number" ? [{ label: "Show in the timeline", href: intervalInTimeline(Math.max(0, at - 0.5), at + 0.5) }, ...nameLinks(data, row)] : [];
        }}
      />
    </Card>
  );
}
