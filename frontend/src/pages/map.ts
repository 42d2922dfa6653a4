/** The page of each tool.  A tool that is not listed shows its sections in order. */
import type { ComponentType } from "preact";

type Page = () => Promise<{ default: ComponentType }>;

export const PAGES: Readonly<Record<string, Page>> = {
  overview: () => import("./summary/SummaryPage"),
  timeline: () => import("./TimelinePage"),
  steps: () => import("./summary/StepsPage"),
  inference: () => import("./summary/LatencyPage"),
  advice: () => import("./advice/AdvicePage"),
  "input-pipeline": () => import("./input/InputPage"),
  "tf-data": () => import("./input/TfDataPage"),
  "op-stats": () => import("./compute/OpsPage"),
  "kernel-stats": () => import("./compute/KernelsPage"),
  annotations: () => import("./compute/AnnotationsPage"),
  "hlo-stats": () => import("./xla/HloPage"),
  "op-profile": () => import("./xla/HloProfilePage"),
  modules: () => import("./compute/ModulesPage"),
  "op-shapes": () => import("./compute/ShapesPage"),
  sequences: () => import("./compute/SequencesPage"),
  roofline: () => import("./xla/RooflinePage"),
  "graph-viewer": () => import("./xla/GraphPage"),
  "critical-path": () => import("./waiting/CriticalPathPage"),
  idle: () => import("./waiting/IdlePage"),
  syncs: () => import("./waiting/SyncsPage"),
  distributed: () => import("./ranks/DistributedPage"),
  "pod-viewer": () => import("./ranks/HostsPage"),
  "memory-profile": () => import("./memory/MemoryPage"),
  "memory-viewer": () => import("./xla/ProgramMemoryPage"),
  system: () => import("./system/SystemPage"),
  "over-time": () => import("./overtime/OverTimePage"),
  sessions: () => import("./sessions/SessionsPage"),
  sql: () => import("./sql/SqlPage"),
};
