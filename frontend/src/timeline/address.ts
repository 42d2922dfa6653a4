/** The state of the timeline in the page's address, so that a link shows the same picture. */
import type { Route } from "../router";
import { type Choices, collapsedAtFirst } from "./layout";
import type { Span } from "./viewport";
import type { GroupInfo } from "./wire";

const MS = 1e9;

/** All parameters of the timeline's own; null takes one out of the address. */
export type Address = Readonly<
  Record<
    "begin" | "end" | "selected" | "find" | "regex" | "pinned" | "hidden" | "collapsed" | "opened" | "marks",
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
  readonly marks: readonly Span[];
}

export function toAddress(shown: Shown, groups: readonly GroupInfo[]): Address {
  const { span, home, choices } = shown;
  const isHome = Math.abs(span.begin - home.begin) + Math.abs(span.end - home.end) < (home.end - home.begin) * 1e-6;
  const usual = collapsedAtFirst(groups);
  return {
    begin: isHome ? null : ms(span.begin),
    end: isHome ? null : ms(span.end),
    selected: shown.selected === null ? null : String(shown.selected),
    find: shown.find || null,
    regex: shown.find && shown.regex ? "1" : null,
    pinned: listed(choices.pinned),
    hidden: listed([...choices.hidden]),
    collapsed: listed([...choices.collapsed].filter((id) => !usual.has(id))),
    opened: listed([...usual].filter((id) => !choices.collapsed.has(id))),
    marks: listed(shown.marks.map((mark) => `${ms(mark.begin)}_${ms(mark.end)}`)),
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
    choices: { collapsed, hidden: new Set(split(params.hidden)), pinned: split(params.pinned) },
    marks: split(params.marks).flatMap((text) => {
      const [begin, end] = text.split("_");
      return spanOf(begin, end) ?? [];
    }),
  };
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
