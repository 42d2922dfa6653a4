/**
 * The one map of colours.  Charts, bars, legends and the timeline all read it.
 *
 * The colours of the categories are the same in both themes.  They were chosen so that any two stay apart for normal,
 * red-blind and green-blind eyes, neighbours in a stack differ in grey as well, and all stand out from a white and
 * from a dark page; `tests/colours.test.ts` measures it.  Red is not among them: red means trouble.
 */
export const CATEGORIES = [
  "compilation",
  "output",
  "input",
  "kernel_launch",
  "host_compute",
  "device_collectives",
  "device_to_device",
  "device_compute",
  "other",
] as const;

export type Category = (typeof CATEGORIES)[number];

export const CATEGORY_COLOUR: Readonly<Record<Category, string>> = {
  compilation: "#e5af02",
  output: "#677303",
  input: "#df8543",
  kernel_launch: "#731cad",
  host_compute: "#67bfb4",
  device_collectives: "#ad4896",
  device_to_device: "#8f3150",
  device_compute: "#2f65ed",
  other: "#908c85",
};

export const CATEGORY_LABEL: Readonly<Record<Category, string>> = {
  compilation: "Compilation",
  output: "Output",
  input: "Input",
  kernel_launch: "Kernel launch",
  host_compute: "Host compute",
  device_collectives: "Collectives",
  device_to_device: "Device to device",
  device_compute: "Device compute",
  other: "Other",
};

/** The category of each kind of event, for the timeline. */
export const KIND_CATEGORY: Readonly<Record<string, Category>> = {
  op: "host_compute",
  executor: "host_compute",
  function_run: "host_compute",
  eager_execute: "host_compute",
  traced_function: "host_compute",
  backward: "host_compute",
  input_wait: "input",
  iterator: "input",
  input_handover: "input",
  input_callback: "input",
  copy_host_to_device_call: "device_to_device",
  copy_host_to_device: "device_to_device",
  infeed: "input",
  runtime_call: "kernel_launch",
  compile: "compilation",
  checkpoint: "output",
  copy_device_to_host: "device_to_device",
  outfeed: "output",
  collective_call: "device_collectives",
  collective: "device_collectives",
  kernel: "device_compute",
  device_op: "device_compute",
  graph_launch: "device_compute",
  module: "device_compute",
  memset: "device_to_device",
  copy_device_to_device: "device_to_device",
  copy_peer: "device_to_device",
  copy_host_to_host: "device_to_device",
  copy_other: "device_to_device",
  sync: "output",
  overhead: "other",
  allocation: "other",
  deallocation: "other",
};

/** The category of each cause in the account of a step, and of those that are waits, drawn lighter. */
export const CAUSE_CATEGORY: Readonly<Record<string, { readonly category: Category; readonly isWait?: boolean }>> = {
  input: { category: "input" },
  python: { category: "other" },
  host_compute: { category: "host_compute" },
  launch: { category: "kernel_launch" },
  device_compute: { category: "device_compute" },
  device_gap: { category: "device_compute", isWait: true },
  copy: { category: "device_to_device" },
  communication: { category: "device_collectives" },
  compile: { category: "compilation" },
  sync: { category: "output" },
  checkpoint: { category: "output", isWait: true },
  contention: { category: "other", isWait: true },
  unknown: { category: "other", isWait: true },
};

export function isCause(name: string): boolean {
  return name in CAUSE_CATEGORY;
}

export function isCategory(name: string): name is Category {
  return name in CATEGORY_COLOUR;
}

/** Names that take a category's hue: found in a name in lower case, and only on the side that it says, if any. */
export interface CategoryRule {
  readonly category: Category;
  readonly pattern: string;
  readonly where: "host" | "device" | "";
}

let rules: readonly { readonly category: Category; readonly pattern: RegExp; readonly where: string }[] = [];

/** Takes the rules that the server sends: what frameworks call things is its vocabulary's to know. */
export function setCategoryRules(sent: readonly CategoryRule[]): void {
  rules = sent.map((rule) => ({ ...rule, pattern: new RegExp(rule.pattern) }));
}

/** The category whose hue a kind of work takes, from what an op, a kernel, an input stage or a thread is called. */
export function categoryOf(kind: string, where: "host" | "device" = "device"): Category {
  const name = kind.toLowerCase();
  if (isCategory(name)) return name;
  const rule = rules.find((each) => (!each.where || each.where === where) && each.pattern.test(name));
  return rule?.category ?? (where === "host" ? "host_compute" : "device_compute");
}

/** The category of an op: its type says more than its name, unless it says nothing. */
export function categoryOfOp(type: string, name: string, where: "host" | "device"): Category {
  const found = categoryOf(type, where);
  return found === "host_compute" || found === "device_compute" ? categoryOf(name, where) : found;
}

/** Red, green and blue of `#rrggbb`, 0-255. */
export function rgb(hex: string): [number, number, number] {
  const value = Number.parseInt(hex.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

export function mix(from: string, to: string, share: number): string {
  const [a, b] = [rgb(from), rgb(to)];
  const channel = (i: 0 | 1 | 2) =>
    Math.round(a[i] + (b[i] - a[i]) * share)
      .toString(16)
      .padStart(2, "0");
  return `#${channel(0)}${channel(1)}${channel(2)}`;
}

/** Relative luminance, as WCAG defines it. */
export function luminance(hex: string): number {
  const [r, g, b] = rgb(hex).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Contrast of two colours, 1 to 21, as WCAG defines it. */
export function contrast(a: string, b: string): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

/** Black or white, whichever can be read on a colour. */
export function inkOn(colour: string): string {
  return contrast(colour, "#ffffff") >= contrast(colour, "#10141b") ? "#ffffff" : "#10141b";
}

/**
 * The shades of slices of a pie: each takes its category's hue, the first of a hue its own colour, later ones lighter
 * or darker, so that neighbours differ.
 */
export function shades(categories: readonly Category[], surface: string): string[] {
  const count = new Map<Category, number>();
  // On a dark page a shade vanishes sooner.
  const [step, most] = luminance(surface) < 0.2 ? [0.09, 0.5] : [0.13, 0.72];
  return categories.map((category) => {
    const index = count.get(category) ?? 0;
    count.set(category, index + 1);
    return mix(CATEGORY_COLOUR[category], surface, Math.min(most, index * step));
  });
}

export interface Palette {
  readonly page: string;
  readonly surface: string;
  readonly raised: string;
  readonly line: string;
  readonly strong: string;
  readonly text: string;
  readonly muted: string;
  readonly accent: string;
  readonly trouble: string;
  readonly good: string;
}

/** The colours of the page itself.  `tokens.css` holds the same values; a test compares them. */
export const PALETTES: Readonly<Record<"light" | "dark", Palette>> = {
  light: {
    page: "#f5f6f8",
    surface: "#ffffff",
    raised: "#ffffff",
    line: "#e2e5ea",
    strong: "#c6ccd5",
    text: "#14181f",
    muted: "#5a6371",
    accent: "#1f55d0",
    trouble: "#c0212e",
    good: "#1a7348",
  },
  dark: {
    page: "#0d1117",
    surface: "#151b23",
    raised: "#1d242e",
    line: "#29313c",
    strong: "#414b59",
    text: "#e8ebf0",
    muted: "#9aa5b4",
    accent: "#82aaff",
    trouble: "#ff7b78",
    good: "#5cc58d",
  },
};
