/**
 * The tools in the order of the rail: what each is called there, the key that leads to it, and its page.
 *
 * A tool that is not listed comes after the others, under its own title, and shows its sections in order.
 */
import type { ComponentType } from "preact";

type Page = () => Promise<{ default: ComponentType }>;

export interface PageEntry {
  readonly label: string;
  readonly key: string;
  /** On the page itself, where there is room; the label if not given. */
  readonly heading?: string;
  readonly page: Page;
}

export const PAGES: Readonly<Record<string, PageEntry>> = {
  overview: { label: "Summary", key: "s", page: () => import("./summary/SummaryPage") },
  timeline: { label: "Timeline", key: "t", page: () => import("./TimelinePage") },
  steps: { label: "Steps", key: "e", page: () => import("./summary/StepsPage") },
  "input-pipeline": { label: "Input", key: "i", page: () => import("./input/InputPage") },
  "op-stats": { label: "Ops", key: "o", page: () => import("./compute/OpsPage") },
  "kernel-stats": { label: "Kernels", key: "k", page: () => import("./compute/KernelsPage") },
  "memory-profile": { label: "Memory", key: "m", page: () => import("./memory/MemoryPage") },
  "pod-viewer": { label: "Hosts", key: "h", page: () => import("./ranks/HostsPage") },
  "tf-data": { label: "tf.data", key: "d", page: () => import("./input/TfDataPage") },
  advice: { label: "Advice", key: "a", page: () => import("./advice/AdvicePage") },
  distributed: { label: "Distributed", key: "r", page: () => import("./ranks/DistributedPage") },
  idle: { label: "Idle", heading: "Idle devices", key: "l", page: () => import("./waiting/IdlePage") },
  "critical-path": {
    ...{ label: "Crit. path", heading: "Critical path", key: "p" },
    page: () => import("./waiting/CriticalPathPage"),
  },
  modules: { label: "Modules", key: "u", page: () => import("./compute/ModulesPage") },
  "op-shapes": { label: "Shapes", heading: "Op shapes", key: "x", page: () => import("./compute/ShapesPage") },
  syncs: { label: "Syncs", heading: "Waits for devices", key: "y", page: () => import("./waiting/SyncsPage") },
  sequences: { label: "Sequences", key: "q", page: () => import("./compute/SequencesPage") },
  "graph-viewer": { label: "Graph", heading: "XLA graph", key: "g", page: () => import("./xla/GraphPage") },
  roofline: { label: "Roofline", key: "f", page: () => import("./xla/RooflinePage") },
  "memory-viewer": {
    ...{ label: "XLA memory", heading: "Memory of XLA programs", key: "v" },
    page: () => import("./xla/ProgramMemoryPage"),
  },
  system: { label: "System", key: "c", page: () => import("./system/SystemPage") },
};
