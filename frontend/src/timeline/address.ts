/** The state of the timeline in the page's address, so that a link shows the same picture. */
import type { Route } from "../router";
import { type Choices, collapsedAtFirst, hiddenAtFirst } from "./layout";
import type { Run, Span } from "./viewport";
import type { GroupInfo } from "./wire";

const MS = 1e9;

/** All parameters of the timeline's own; null takes one out of the address. */
export type Address = Readonly<
  Record<
    | "begin"
    | "end"
    | "selected"
    | "find"
    | "regex"
    | "pinned"
    | "hidden"
    | "shown"
    | "collapsed"
    | "opened"
    | "marks"
    | "region"
    | "stretch",
    string | null
  >
>;

export interface Shown {
  readonly span: Span;
  readonly home: Span;
  readonly selected: number | null;
  readonly find: string;
  readonly regex: boolean;
  readonly choices: Choices;
  readonly marks: readonly Mark[];
  readonly region: (Span & { readonly tracks: readonly string[] | null }) | null;
  readonly run: Run | null;
}

/** A stretch of time that a reader wants to find again. */
export interface Mark extends Span {
  readonly name: string;
}

export function toAddress(shown: Shown, groups: readonly GroupInfo[]): Address {
  const { span, home, choices } = shown;
  const isHome = Math.abs(span.begin - home.begin) + Math.abs(span.end - home.end) < (home.end - home.begin) * 1e-6;
  const usual = collapsedAtFirst(groups);
  const out = hiddenAtFirst(groups);
  const { region } = shown;
  return {
    begin: isHome ? null : ms(span.begin),
    end: isHome ? null : ms(span.end),
    selected: shown.selected === null ? null : String(shown.selected),
    find: shown.find || null,
    regex: shown.find && shown.regex ? "1" : null,
    pinned: listed(choices.pinned),
    hidden: listed([...choices.hidden].filter((id) => !out.has(id))),
    shown: listed([...out].filter((id) => !choices.hidden.has(id))),
    collapsed: listed([...choices.collapsed].filter((id) => !usual.has(id))),
    opened: listed([...usual].filter((id) => !choices.collapsed.has(id))),
    marks: listed(
      shown.marks.map((mark) =>
        [ms(mark.begin), ms(mark.end), ...(mark.name ? [encodeURIComponent(mark.name)] : [])].join("_"),
      ),
    ),
    region: region && [ms(region.begin), ms(region.end), ...(region.tracks ?? [])].join("_"),
    stretch: shown.run && [ms(shown.run.begin), ms(shown.run.end), shown.run.ribbon, shown.run.cause].join("_"),
  };
}

export function fromAddress(params: Route["params"], home: Span, groups: readonly GroupInfo[]): Shown {
  const collapsed = new Set(collapsedAtFirst(groups));
  for (const id of split(params.opened)) collapsed.delete(id);
  for (const id of split(params.collapsed)) collapsed.add(id);
  const selected = Number(params.selected ?? "");
  return {
    span: spanOf(params.begin, params.end) ?? home,
    home,
    selected: params.selected && Number.isInteger(selected) && selected >= 0 ? selected : null,
    find: params.find ?? "",
    regex: params.regex === "1",
    choices: { collapsed, hidden: hiddenOf(params, groups), pinned: split(params.pinned) },
    marks: split(params.marks).flatMap((text) => {
      const [begin, end, ...name] = text.split("_");
      const span = spanOf(begin, end);
      return span ? { ...span, name: decodeName(name.join("_")) } : [];
    }),
    region: regionOf(params.region),
    run: runOf(params.stretch),
  };
}

function hiddenOf(params: Route["params"], groups: readonly GroupInfo[]): ReadonlySet<string> {
  const hidden = new Set(hiddenAtFirst(groups));
  for (const id of split(params.shown)) hidden.delete(id);
  for (const id of split(params.hidden)) hidden.add(id);
  return hidden;
}

function regionOf(text: string | undefined): Shown["region"] {
  const [begin, end, ...tracks] = (text ?? "").split("_");
  const span = spanOf(begin, end);
  return span && { ...span, tracks: tracks.length ? tracks : null };
}

function runOf(text: string | undefined): Run | null {
  const [begin, end, ribbon, ...cause] = (text ?? "").split("_");
  const span = spanOf(begin, end);
  return span && ribbon ? { ...span, ribbon, cause: cause.join("_") } : null;
}

function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A place that a page points to: what is there, and the page to go back to. */
export interface Evidence extends Span {
  readonly why: string;
  readonly from: string;
}

export function evidenceOf(params: Route["params"]): Evidence | null {
  const [begin, end] = (params.evidence ?? "").split("_");
  const span = spanOf(begin, end);
  return span && { ...span, why: params.why ?? "", from: params.from ?? "" };
}

function spanOf(begin: string | undefined, end: string | undefined): Span | null {
  const span = { begin: Number(begin || NaN) * MS, end: Number(end || NaN) * MS };
  return Number.isFinite(span.begin) && span.end > span.begin ? span : null;
}

/** Milliseconds with the digits that a picosecond needs and no more. */
function ms(ps: number): string {
  return String(Number((ps / MS).toFixed(9)));
}

function listed(list: readonly string[]): string | null {
  return list.length ? list.join(",") : null;
}

function split(text: string | undefined): string[] {
  return (text ?? "").split(",").filter(Boolean);
}
