/** The page of each tool.  A tool that is not listed shows its sections in order. */
import type { ComponentType } from "preact";

type Part = () => Promise<{ default: ComponentType<never> }>;

/** What is drawn of a tool's answer; the head above it is the same for all. */
export const VIEWS: Readonly<Record<string, Part>> = {
  steps: () => import("./summary/StepsPage"),
  inference: () => import("./summary/LatencyPage"),
  "input-pipeline": () => import("./input/InputPage"),
  "tf-data": () => import("./input/TfDataPage"),
  "kernel-stats": () => import("./compute/KernelsPage"),
  annotations: () => import("./compute/AnnotationsPage"),
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
  trust: () => import("./system/TrustPage"),
};

/** Pages with controls, or without an answer. */
export const PAGES: Readonly<Record<string, Part>> = {
  overview: () => import("./summary/SummaryPage"),
  timeline: () => import("./TimelinePage"),
  advice: () => import("./advice/AdvicePage"),
  "op-stats": () => import("./compute/OpsPage"),
  "over-time": () => import("./overtime/OverTimePage"),
  sessions: () => import("./sessions/SessionsPage"),
  sql: () => import("./sql/SqlPage"),
};
