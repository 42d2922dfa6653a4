/** The tools in the order of the rail, with their short names, keys and icons.  One that is not listed still shows. */
import { computed } from "@preact/signals";
import { config, session } from "./session";

export interface ToolEntry {
  readonly name: string;
  readonly label: string;
  /** On the page itself, where there is room. */
  readonly heading: string;
  readonly title: string;
  readonly summary: string;
  readonly key: string | null;
  readonly missing: string | null;
}

const KNOWN: readonly {
  readonly name: string;
  readonly label: string;
  readonly key: string;
  readonly heading?: string;
}[] = [
  { name: "overview", label: "Summary", key: "s" },
  { name: "timeline", label: "Timeline", key: "t" },
  { name: "steps", label: "Steps", key: "e" },
  { name: "input-pipeline", label: "Input", key: "i" },
  { name: "op-stats", label: "Ops", key: "o" },
  { name: "kernel-stats", label: "Kernels", key: "k" },
  { name: "memory-profile", label: "Memory", key: "m" },
  { name: "pod-viewer", label: "Hosts", key: "h" },
  { name: "tf-data", label: "tf.data", key: "d" },
  { name: "advice", label: "Advice", key: "a" },
  { name: "distributed", label: "Distributed", key: "r" },
  { name: "idle", label: "Idle", heading: "Idle devices", key: "l" },
  { name: "critical-path", label: "Crit. path", heading: "Critical path", key: "p" },
  { name: "modules", label: "Modules", key: "u" },
  { name: "op-shapes", label: "Shapes", heading: "Op shapes", key: "x" },
  { name: "syncs", label: "Syncs", heading: "Waits for devices", key: "y" },
  { name: "sequences", label: "Sequences", key: "q" },
  { name: "system", label: "System", key: "c" },
];

const TIMELINE = { name: "timeline", title: "Timeline", summary: "every event of every thread and device over time" };

export const tools = computed<readonly ToolEntry[]>(() => {
  const offered = config.value?.tools ?? [];
  const all = offered.some((tool) => tool.name === "timeline") ? offered : [TIMELINE, ...offered];
  const rank = (name: string) => KNOWN.findIndex((tool) => tool.name === name) >>> 0;
  return [...all]
    .sort((a, b) => rank(a.name) - rank(b.name))
    .map((tool) => {
      const known = KNOWN.find((each) => each.name === tool.name);
      return {
        name: tool.name,
        label: known?.label ?? tool.title,
        heading: known?.heading ?? known?.label ?? tool.title,
        title: tool.title,
        summary: tool.summary,
        key: known?.key ?? null,
        missing: missingOf(tool.name),
      };
    });
});

function missingOf(name: string): string | null {
  const state = session.value?.tools.find((tool) => tool.name === name);
  return state?.has_data === false ? (state.missing ?? "this profile holds no data for it") : null;
}

export function toolEntry(name: string): ToolEntry | null {
  return tools.value.find((tool) => tool.name === name) ?? null;
}
