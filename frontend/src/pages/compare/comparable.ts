/** What of each tool's report is laid side by side when two sessions are compared. */
import type { Report } from "../../api";
import { duration, words } from "../../format";
import type { Advice, Row } from "../shared/reports";

export interface Comparable {
  /** The rows, with the key columns and the measure; null where they are so many that the report came without them. */
  readonly rows: (report: Report) => readonly Row[] | null;
  /** What two rows have in common if they are the same thing. */
  readonly keys: readonly string[];
  readonly measure: string;
  readonly unit: string;
  /** What the measure is, in words. */
  readonly doc: string;
  readonly count?: string;
  /** Totals of a capture: they are compared per step, since captures are of different length. */
  readonly isTotal: boolean;
  /** The rows have an order of their own; without one the largest difference comes first. */
  readonly isOrdered?: boolean;
  /** More of it is neither good nor bad. */
  readonly isNeutral?: boolean;
  /** What becomes of rows of the same name, if they are not added up. */
  readonly together?: string;
  /** What both are said to be before their numbers, each a sentence. */
  readonly lines?: (mine: Report, theirs: Report) => readonly string[];
  /** A heading for a table that is not the only one. */
  readonly title?: string;
}

function listOf(report: Report, name: string): readonly Row[] | null {
  return ((report as unknown as Record<string, unknown>)[name] as readonly Row[] | undefined) ?? null;
}

const rowsOf = (name: string) => (report: Report) => listOf(report, name);

/** Rows of a list, each made into those of its parts. */
const partsOf = (name: string, parts: (row: Row) => readonly Row[]) => (report: Report) =>
  listOf(report, name)?.flatMap(parts) ?? null;

interface OfPipelines extends Report {
  readonly graph?: readonly Row[];
  readonly pipelines?: readonly Row[];
  readonly bottleneck: { readonly iterator: string; readonly self_us: number } | null;
}

interface OfAdvice extends Report {
  readonly advice: readonly Advice[];
}

/** Of each tool one table, or several, beside those of `stepscope compare`. */
export const COMPARABLE: Readonly<Record<string, Comparable | readonly Comparable[]>> = {
  "input-pipeline": {
    rows: rowsOf("rows"),
    keys: ["op", "category"],
    measure: "self_ms",
    unit: "ms",
    doc: "self time of the input op",
    count: "count",
    isTotal: true,
  },
  "critical-path": {
    rows: rowsOf("parts"),
    keys: ["part"],
    measure: "ms",
    unit: "ms",
    doc: "time of the part on the critical path of a step",
    isTotal: false,
  },
  modules: {
    rows: rowsOf("rows"),
    keys: ["module"],
    measure: "device_us",
    unit: "us",
    doc: "device time of the module with its children",
    count: "calls",
    isTotal: true,
  },
  syncs: {
    rows: rowsOf("rows"),
    keys: ["call", "call_site"],
    measure: "total_us",
    unit: "us",
    doc: "time that the host waits in the call",
    count: "count",
    isTotal: true,
  },
  "pod-viewer": {
    rows: rowsOf("workers"),
    keys: ["host", "device"],
    measure: "mean_ms",
    unit: "ms",
    doc: "mean time of a step on the worker",
    isTotal: false,
  },
  idle: {
    rows: partsOf("rows", ({ device, stream, host_wait_ms, kernel_wait_ms, other_ms }) => [
      { device: device ?? null, stream: stream ?? null, waits_for: "the host", ms: host_wait_ms ?? null },
      { device: device ?? null, stream: stream ?? null, waits_for: "a kernel", ms: kernel_wait_ms ?? null },
      { device: device ?? null, stream: stream ?? null, waits_for: "something else", ms: other_ms ?? null },
    ]),
    ...{
      keys: ["device", "stream", "waits_for"],
      measure: "ms",
      unit: "ms",
      doc: "time that the stream is idle for this reason; of several hosts, all together",
      isTotal: true,
    },
  },
  distributed: {
    rows: rowsOf("collectives"),
    keys: ["operation", "ranks", "bytes"],
    measure: "total_us",
    unit: "us",
    doc: "time of the collective on the ranks that were recorded, all together",
    count: "count",
    isTotal: true,
  },
  "op-shapes": {
    rows: partsOf("rows", ({ name, input_shapes, calls, device_self_us, host_self_us }) => [
      {
        where: "device",
        name: name ?? null,
        input_shapes: input_shapes ?? null,
        self_us: device_self_us ?? null,
        calls: calls ?? null,
      },
      {
        where: "host",
        name: name ?? null,
        input_shapes: input_shapes ?? null,
        self_us: host_self_us ?? null,
        calls: calls ?? null,
      },
    ]),
    ...{
      keys: ["where", "name", "input_shapes"],
      measure: "self_us",
      unit: "us",
      doc: "self time of the op with inputs of these shapes",
      count: "calls",
      isTotal: true,
    },
  },
  "tf-data": [
    {
      title: "Iterators of the slow call",
      rows: (report) =>
        ((report as OfPipelines).graph ?? []).map(({ name, self_us }) => ({
          iterator: name ?? null,
          self_us: self_us ?? null,
        })),
      lines: (mine, theirs) => [
        `Bottleneck before: ${bottleneckOf(theirs as OfPipelines)}. After: ${bottleneckOf(mine as OfPipelines)}.`,
      ],
      ...{
        keys: ["iterator"],
        measure: "self_us",
        unit: "us",
        doc: "self time of the iterator in the slow call that the graph shows",
        isTotal: false,
      },
    },
    {
      title: "Input pipelines",
      rows: (report) =>
        ((report as OfPipelines).pipelines ?? []).map(({ name, total_ms, calls }) => ({
          pipeline: name ?? null,
          total_ms: total_ms ?? null,
          calls: calls ?? null,
        })),
      ...{
        keys: ["pipeline"],
        measure: "total_ms",
        unit: "ms",
        doc: "time of all calls of the pipeline; of several hosts, all together",
        count: "calls",
        isTotal: true,
      },
    },
  ],
  advice: {
    rows: (report) => savings((report as OfAdvice).advice),
    lines: (mine, theirs) => shared((mine as OfAdvice).advice, (theirs as OfAdvice).advice),
    ...{
      keys: ["advice"],
      measure: "saved_ms",
      unit: "ms",
      doc: "how much shorter a step becomes at most, as the advice predicts",
      isTotal: false,
      together: "of several of a kind, the largest",
    },
  },
  system: {
    rows: (report) => averages(listOf(report, "rows")),
    ...{
      keys: ["place", "counter", "unit"],
      measure: "mean",
      unit: "by unit",
      doc: "mean of the counter's samples",
      isTotal: false,
      isOrdered: true,
      isNeutral: true,
      together: "of several hosts, the mean of all their samples",
    },
  },
  sequences: {
    rows: rowsOf("rows"),
    keys: ["kernels"],
    measure: "device_us",
    unit: "us",
    doc: "device time of the sequence",
    count: "count",
    isTotal: true,
  },
};

/** The pages that show a table of `stepscope compare`, by its id. */
export const OF_COMMAND: Readonly<Record<string, string>> = {
  overview: "breakdown",
  steps: "spread",
  "op-stats": "rows",
  "kernel-stats": "kernels",
  "memory-profile": "memories",
};

export function isCompared(tool: string): boolean {
  return Object.hasOwn(OF_COMMAND, tool) || comparablesOf(tool).length > 0;
}

/** The tables of a tool; none for a tool that is not known here. */
export function comparablesOf(tool: string): readonly Comparable[] {
  const found = Object.hasOwn(COMPARABLE, tool) ? COMPARABLE[tool] : undefined;
  return found ? ([found].flat() as readonly Comparable[]) : [];
}

function bottleneckOf({ bottleneck }: OfPipelines): string {
  return bottleneck
    ? `${bottleneck.iterator}, ${duration(bottleneck.self_us / 1e3)} of its own`
    : "none, no call was slow";
}

/** What each kind of advice predicts to save in a step; advice without a prediction has no row. */
export function savings(advice: readonly Advice[]): Row[] {
  const best = new Map<string, number>();
  for (const { class: kind, step_time_ms, predicted_step_time_ms } of advice) {
    if (step_time_ms !== null && predicted_step_time_ms !== null)
      best.set(kind, Math.max(best.get(kind) ?? 0, step_time_ms - predicted_step_time_ms));
  }
  return [...best].map(([kind, saved_ms]) => ({ advice: words(kind), saved_ms }));
}

/** Which kinds of advice only one side gets, with or without a prediction. */
export function shared(mine: readonly Advice[], theirs: readonly Advice[]): string[] {
  const [a, b] = [mine, theirs].map(
    (side) => new Set(side.filter((each) => each.class !== "none").map((each) => words(each.class))),
  ) as [Set<string>, Set<string>];
  const told = (title: string, kinds: readonly string[]) => (kinds.length ? [`${title}: ${kinds.join(", ")}.`] : []);
  return [
    ...told(
      "Advised before only",
      [...b].filter((kind) => !a.has(kind)),
    ),
    ...told(
      "Advised after only",
      [...a].filter((kind) => !b.has(kind)),
    ),
    ...told(
      "Advised of both",
      [...a].filter((kind) => b.has(kind)),
    ),
  ];
}

/** One row for each counter: the mean over the samples of all hosts that have it. */
export function averages(rows: readonly Row[] | null): readonly Row[] | null {
  if (!rows) return null;
  const found = new Map<string, { readonly row: Row; sum: number; samples: number }>();
  for (const row of rows) {
    const key = JSON.stringify([row.place, row.counter, row.unit]);
    const sum = found.get(key) ?? { row, sum: 0, samples: 0 };
    sum.sum += Number(row.mean) * Number(row.samples);
    sum.samples += Number(row.samples);
    found.set(key, sum);
  }
  return [...found.values()].map(({ row, sum, samples }) => ({
    place: row.place ?? null,
    counter: row.counter ?? null,
    unit: row.unit ?? null,
    mean: samples ? sum / samples : null,
  }));
}
