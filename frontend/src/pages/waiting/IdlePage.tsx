/** Why streams are idle, how long their queues are, and how launches behave. */
import { useMemo } from "preact/hooks";
import type { Report, ToolAnswer } from "../../api";
import { partsOfCauses } from "../../design/causes";
import { CATEGORY_COLOUR, mix } from "../../design/colours";
import { palette } from "../../design/theme";
import { evidenceInTimeline } from "../../links";
import { linkTo } from "../../router";
import { docOf, figuresOf, type RowOf, type TableOf, tableOf } from "../../sections";
import { Card, FigureRow } from "../../ui/basics";
import { type BarPart, StackedBars, type StackedRow } from "../shared/Bars";
import { Findings } from "../shared/Findings";
import { useRowLinks } from "../shared/intervals";
import { More } from "../shared/More";
import { TableCard } from "../shared/sections";
import { ToolPage } from "../shared/ToolPage";

type Stream = RowOf<"idle", "rows">;
type Gap = RowOf<"idle", "gaps">;

interface IdleReport extends Report {
  readonly findings: readonly string[];
  readonly causes?: readonly RowOf<"idle", "causes">[];
  readonly rows?: readonly RowOf<"idle", "rows">[];
  readonly gaps?: readonly RowOf<"idle", "gaps">[];
  readonly devices?: readonly RowOf<"idle", "devices">[];
}

export default function IdlePage() {
  return <ToolPage<"idle", IdleReport> tool="idle">{(answer) => <Idle {...answer} />}</ToolPage>;
}

const MOST_BARS = 24;
/** A stream that works less than this share of the busiest one, such as one for copies, slows nothing. */
const WORTH_A_BAR = 0.02;
const BUSY = "busy";

function Idle({ report, sections }: ToolAnswer<"idle", IdleReport>) {
  const streams = tableOf(sections, "rows");
  const gaps = tableOf(sections, "gaps");
  const devices = tableOf(sections, "devices");
  const look = palette.value;
  const parts = useMemo(() => causes(streams, look.surface), [streams, look]);
  const several = report.hosts.length > 1;
  const gapLinks = useRowLinks(gaps, several);
  const rows = useMemo(() => busiestFirst(report.rows ?? []), [report]);
  const busy = rows.filter((row) => Number(row.busy_ms ?? 0) >= WORTH_A_BAR * Number(rows[0]?.busy_ms ?? 0));
  return (
    <>
      <Findings lines={report.findings}>
        <Waits rows={report.causes ?? []} several={several} />
      </Findings>
      <Card title="Streams and why they idle" note={streamsNote(busy.length, rows.length)}>
        <StackedBars
          label="Busy and idle time of each stream"
          parts={parts}
          rows={busy.slice(0, MOST_BARS).map((row) => streamBar(row, report.gaps ?? [], several))}
        />
      </Card>
      <TableCard section={gaps} tool="idle" id="gaps" main links={gapLinks} />
      <More title="Causes, devices and streams" tables={["causes", "devices", "streams"]}>
        <TableCard section={tableOf(sections, "causes")} tool="idle" id="causes" plain height="all" />
        <TableCard section={devices} tool="idle" id="devices" plain height="all" />
        <TableCard section={streams} tool="idle" id="streams" />
      </More>
      <More title="Queues and launches" tables={["queues"]}>
        <TableCard
          section={tableOf(sections, "queues")}
          tool="idle"
          id="queues"
          heading="Queues: work launched but not yet started"
        />
        <Card title="Launches">
          <FigureRow section={figuresOf(sections, "launches")} />
        </Card>
      </More>
    </>
  );
}

/** The median step on each device: what it waits for while the device idles, and the rest. */
function Waits({ rows, several }: { rows: readonly RowOf<"idle", "causes">[]; several: boolean }) {
  const look = palette.value;
  const parts = useMemo(
    () => [
      { key: BUSY, label: "Device busy", colour: mix(CATEGORY_COLOUR.device_compute, look.surface, 0.7), doc: "" },
      ...partsOfCauses(
        rows.map((row) => ({ cause: String(row.cause), meaning: String(row.meaning ?? "") })),
        look.surface,
      ),
    ],
    [rows, look],
  );
  const places = [...new Set(rows.map((row) => `${row.host} ${row.device}`))].slice(0, MOST_BARS);
  if (!places.length) return null;
  return (
    <StackedBars
      label="What the median step waits for while devices idle"
      parts={parts}
      rows={places.map((place) => {
        const own = rows.filter((row) => `${row.host} ${row.device}` === place);
        const busy = own.reduce((sum, row) => sum + Number(row.ms ?? 0) - Number(row.idle_ms ?? 0), 0);
        const idle = own.map((row) => [String(row.cause), Number(row.idle_ms ?? 0)]);
        return {
          key: place,
          label: String(own[0]?.device),
          note: several ? String(own[0]?.host) : "median step",
          parts: { [BUSY]: busy, ...Object.fromEntries(idle) },
        };
      })}
    />
  );
}

function streamsNote(busy: number, all: number): string {
  const shown = Math.min(busy, MOST_BARS);
  const left = all - shown;
  const text = "busy time, and idle time by cause; the busiest first";
  return left > 0 ? `${text}; ${left} that hardly work are in the table of streams` : text;
}

/** Sorts busy streams first: a stream that is hardly used idles longest but slows nothing. */
function busiestFirst(rows: readonly Stream[]): Stream[] {
  return [...rows].sort((one, other) => Number(other.busy_ms ?? 0) - Number(one.busy_ms ?? 0));
}

function causes(streams: TableOf<"idle", "rows">, surface: string): BarPart[] {
  const part = (key: keyof RowOf<"idle", "rows">, label: string, colour: string): BarPart => ({
    key,
    label,
    colour,
    doc: docOf(streams, key),
  });
  return [
    part("busy_ms", "Busy", CATEGORY_COLOUR.device_compute),
    part("host_wait_ms", "Waits for the host", CATEGORY_COLOUR.host_compute),
    part("kernel_wait_ms", "Between kernels", CATEGORY_COLOUR.kernel_launch),
    part("other_ms", "Waits for something else", mix(CATEGORY_COLOUR.other, surface, 0.35)),
  ];
}

/** The bar of a stream; it leads to the stream's longest gap, if that is listed. */
function streamBar(row: Stream, gaps: readonly Gap[], several: boolean): StackedRow {
  const host = several ? String(row.host) : null;
  const longest = gaps.find((gap) => (["host", "device", "stream"] as const).every((name) => gap[name] === row[name]));
  const at = (name: keyof Stream) => Number(row[name] ?? 0);
  const place = several ? `${row.host} ${row.device}` : String(row.device);
  return {
    key: `${row.host} ${row.device} ${row.stream}`,
    label: String(row.stream),
    note: place,
    parts: {
      busy_ms: at("busy_ms"),
      host_wait_ms: at("host_wait_ms"),
      kernel_wait_ms: at("kernel_wait_ms"),
      other_ms: at("other_ms"),
    },
    href: longest ? aroundGap(longest, host) : linkTo("timeline", host ? { host } : {}),
    leads: longest ? "See its longest gap in the timeline" : "See the gaps in the timeline",
  };
}

/** A gap in the timeline. */
function aroundGap(gap: Gap, host: string | null): string {
  const [begin, length] = [Number(gap.start_ms), Number(gap.duration_ms)];
  return evidenceInTimeline(begin, begin + length, `Gap on ${gap.stream}: ${gap.cause ?? "idle"}`, host);
}
