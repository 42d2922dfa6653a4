/**
 * The questions that the page answers, in the order of the rail, and the views that answer each.
 *
 * A view shows the report of one tool; where a tool has several views, a parameter chooses between them.  Addresses
 * name question and view (`#/compute/kernel`); the names of tools, which were addresses once, still lead to them.
 */

export interface View {
  /** The last part of the address. */
  readonly path: string;
  readonly tool: string;
  /** On the switch between the views of a question. */
  readonly label: string;
  /** As a title of its own; the label if not given. */
  readonly heading?: string;
  /** After `g`, leads here. */
  readonly key?: string;
  /** The value of the parameter `by` for this view, where a tool has several. */
  readonly by?: string;
  /** By what it groups, as the tool says what it lacks. */
  readonly groups?: string;
  /** Stands apart from the views that group the same times. */
  readonly isApart?: boolean;
  /** Another form of a view that is on the switch, which leads to it. */
  readonly isFold?: boolean;
}

export interface Question {
  readonly name: string;
  readonly label: string;
  readonly key: string;
  /** What the switch between its views does. */
  readonly switchLabel: string;
  readonly views: readonly View[];
}

export const QUESTIONS: readonly Question[] = [
  {
    ...{ name: "summary", label: "Summary", key: "s", switchLabel: "Show" },
    views: [
      { path: "", tool: "overview", label: "Verdict", heading: "Summary" },
      { path: "advice", tool: "advice", label: "Advice", key: "a" },
      { path: "steps", tool: "steps", label: "Steps", key: "e" },
      { path: "latency", tool: "inference", label: "Latency" },
      { path: "trust", tool: "trust", label: "Trust", heading: "Can this recording be trusted?" },
      { path: "proofs", tool: "proofs", label: "Proofs", heading: "Measured in the running job" },
    ],
  },
  {
    ...{ name: "timeline", label: "Timeline", key: "t", switchLabel: "Show" },
    views: [
      { path: "", tool: "timeline", label: "Timeline" },
      { path: "sql", tool: "sql", label: "SQL", heading: "Questions in SQL", key: "j" },
    ],
  },
  {
    ...{ name: "compute", label: "Compute", key: "c", switchLabel: "Group by" },
    views: [
      { path: "op", tool: "op-stats", label: "Op", heading: "Ops", key: "o" },
      { path: "type", tool: "op-stats", label: "Type", heading: "Op types", by: "type", isFold: true },
      { path: "layer", tool: "modules", label: "Layer", heading: "Layers", key: "u" },
      { path: "annotation", tool: "annotations", label: "Annotation", heading: "Annotations" },
      { path: "kernel", tool: "kernel-stats", label: "Kernel", heading: "Kernels", key: "k" },
      { path: "line", tool: "op-shapes", label: "Line", heading: "Lines", by: "line", groups: "line" },
      { path: "shape", tool: "op-shapes", label: "Shape", heading: "Shapes", key: "x", groups: "shape" },
      { path: "sequences", tool: "sequences", label: "Sequences", key: "q", isApart: true },
      { path: "roofline", tool: "roofline", label: "Roofline", key: "f", isApart: true },
      { path: "graph", tool: "graph-viewer", label: "XLA graph", key: "g", isApart: true },
      { path: "hlo-profile", tool: "op-profile", label: "HLO", heading: "HLO profile", isApart: true },
      { path: "hlo", tool: "hlo-stats", label: "Instructions", heading: "HLO instructions", isFold: true },
    ],
  },
  {
    ...{ name: "waiting", label: "Waiting", key: "w", switchLabel: "Show" },
    views: [
      { path: "", tool: "critical-path", label: "What the step waits for", heading: "Waiting", key: "p" },
      { path: "input", tool: "input-pipeline", label: "Input", key: "i" },
      { path: "tf-data", tool: "tf-data", label: "tf.data", key: "d" },
      { path: "idle", tool: "idle", label: "Idle devices", key: "l" },
      { path: "syncs", tool: "syncs", label: "Waits for devices", key: "y" },
      { path: "system", tool: "system", label: "System", key: "n" },
    ],
  },
  {
    ...{ name: "ranks", label: "Ranks", key: "r", switchLabel: "Show" },
    views: [
      { path: "", tool: "distributed", label: "Compute and communication", heading: "Ranks" },
      { path: "steps", tool: "pod-viewer", label: "Step by rank", heading: "Steps of each rank", key: "h" },
    ],
  },
  {
    ...{ name: "memory", label: "Memory", key: "m", switchLabel: "Show" },
    views: [
      { path: "", tool: "memory-profile", label: "In use over time", heading: "Memory" },
      { path: "xla", tool: "memory-viewer", label: "XLA programs", heading: "Memory of XLA programs", key: "v" },
    ],
  },
  {
    ...{ name: "over-time", label: "Over time", key: "z", switchLabel: "Show" },
    views: [{ path: "", tool: "over-time", label: "Over time" }],
  },
];

/** Questions that have become views of another one, by their addresses before. */
const MOVED: Readonly<Record<string, string>> = {
  input: "waiting/input",
  "input/tf-data": "waiting/tf-data",
  system: "waiting/system",
  "memory/system": "waiting/system",
  sql: "timeline/sql",
};

export interface Place {
  readonly question: Question;
  readonly view: View;
}

const PLACES: readonly Place[] = QUESTIONS.flatMap((question) => question.views.map((view) => ({ question, view })));

const addressOf = ({ question, view }: Place) => [question.name, view.path].filter(Boolean).join("/");

const BY_ADDRESS: ReadonlyMap<string, Place> = new Map([
  ...QUESTIONS.map((question) => [question.name, { question, view: question.views[0] as View }] as const),
  ...PLACES.map((place) => [addressOf(place), place] as const),
]);

/** The tools in the order in which the page shows them. */
export const SHOWN_TOOLS: readonly string[] = [...new Set(PLACES.map(({ view }) => view.tool))];

/** Where a tool is shown; null for tools that the page does not know. */
export function placeOf(tool: string, by?: string): Place | null {
  const places = PLACES.filter(({ view }) => view.tool === tool);
  return places.find(({ view }) => view.by === by) ?? places.find(({ view }) => !view.by) ?? places[0] ?? null;
}

/** The place that an address names; null if none has that name. */
export function placeAt(address: string): Place | null {
  return BY_ADDRESS.get(MOVED[address] ?? address) ?? null;
}

/** The address of a tool's view, and whether it stands for the parameter `by`. */
export function addressOfTool(tool: string, by?: string): { readonly address: string; readonly holdsBy: boolean } {
  const place = placeOf(tool, by);
  if (!place) return { address: encodeURIComponent(tool), holdsBy: false };
  return { address: addressOf(place), holdsBy: place.view.by !== undefined && place.view.by === by };
}
