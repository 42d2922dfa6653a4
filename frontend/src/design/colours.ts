/** Colours: the categories' and causes' from the one declaration (see `generated/palette`), and those of the page. */
import * as declared from "../generated/palette";

export type Category = keyof typeof declared.CATEGORY_COLOUR;

export const CATEGORIES = Object.keys(declared.CATEGORY_COLOUR) as readonly Category[];
export const CATEGORY_COLOUR: Readonly<Record<Category, string>> = declared.CATEGORY_COLOUR;
export const CATEGORY_LABEL: Readonly<Record<Category, string>> = declared.CATEGORY_LABEL;
/** The category of each kind of event, for the timeline. */
export const KIND_CATEGORY: Readonly<Record<string, Category>> = Object.fromEntries(
  declared.KINDS.flatMap(([category, kinds]) => kinds.split(" ").map((kind) => [kind, category])),
);
/** The colours of the causes in the account of a step; those of waits are drawn lighter. */
export const CAUSE_COLOUR: Readonly<Record<string, { readonly colour: string; readonly isWait: boolean }>> =
  declared.CAUSE_COLOUR;

export function isCause(name: string): boolean {
  return name in CAUSE_COLOUR;
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

/** What graphics need to be told from their ground, by WCAG. */
export const LEAST_CONTRAST = 3;

/** A colour, as much brighter in the same hue as a dark ground asks for. */
export function seenOn(colour: string, ground: string): string {
  let seen = colour;
  for (let more = 1.05; luminance(ground) < 0.2 && more < 3 && contrast(seen, ground) < LEAST_CONTRAST; more += 0.05)
    seen = `#${rgb(colour)
      .map((part) =>
        Math.min(255, Math.round(part * more))
          .toString(16)
          .padStart(2, "0"),
      )
      .join("")}`;
  return seen;
}

/** Black or white, whichever can be read on a colour. */
export function inkOn(colour: string): string {
  return contrast(colour, "#ffffff") >= contrast(colour, "#10141b") ? "#ffffff" : "#10141b";
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
