/** What the timeline's routes answer, and how a window's bytes are read. */

import { ApiError, address, fetchAnswer, getJson } from "../api";
import type { Details, Group, Links, Stretch as Reported, SelectionSum, Spot } from "../generated/reports";
import type { Culprit as Reason } from "../pages/shared/reports";
import type { Span } from "./viewport";

export type { SelectionSum as SelectionAnswer, Spot, Track as TrackInfo } from "../generated/reports";

export interface GroupInfo extends Omit<Group, "groups"> {
  readonly groups: readonly GroupInfo[];
  /** The ribbon of causes over it, if it has one. */
  readonly ribbon?: string | null;
}

export interface Tracks {
  readonly host: string;
  readonly span_ps: readonly [number, number];
  readonly activity_ps: readonly [number, number];
  readonly events: number;
  readonly not_drawn: number;
  readonly kinds: Readonly<Record<string, number>>;
  readonly types: number;
  readonly names_a_page: number;
  readonly partial: boolean;
  /** Whether there are Python calls of libraries to fold. */
  readonly has_library_calls: boolean;
  /** What a moment of a ribbon may be spent on. */
  readonly causes: readonly string[];
  readonly groups: readonly GroupInfo[];
}

export interface Steps {
  readonly source: string;
  readonly how: string;
  /** How rows of steps on a device relate to the marks on the host; empty unless there are both. */
  readonly clocks: string;
  readonly name: readonly string[];
  readonly number: readonly number[];
  readonly start_ps: readonly number[];
  readonly end_ps: readonly number[];
}

export interface EventDetails extends Details {
  readonly stats: readonly (readonly [string, string | number | null])[];
}

export interface EventLinks extends Links {
  /** Of device work: what launched it and from where, and what it waited for. */
  readonly work: {
    readonly how: "launch" | "stream" | "queue";
    readonly idle_ps: number;
    readonly waited_for: Spot | null;
    readonly culprit: Culprit | null;
    readonly stack: readonly Spot[];
  } | null;
}

/** What a person can look at: a function, an op or a kernel. */
export type Culprit = Pick<Reason, "name" | "file" | "line" | "op" | "layer">;

/** A stretch of a ribbon that has one cause. */
export interface Stretch extends Omit<Reported, "event"> {
  readonly culprit: Culprit | null;
  readonly spot: Spot | null;
}

/** Event, line, lane, start and end. */
export type ArrowEnd = readonly [number, number, number, number, number];

/** The longest events of a selection, and how long all of them last. */
export interface SlicesAnswer {
  readonly total: number;
  readonly sum_ps: number;
  readonly slices: readonly Spot[];
  readonly edges_ps: readonly number[];
  readonly counts: readonly number[];
}

/** A call tree as columns; a node comes after its parent. */
export interface CallTreeAnswer {
  readonly parent: readonly number[];
  readonly name: readonly string[];
  readonly events: readonly number[];
  readonly total_ps: readonly number[];
  readonly self_ps: readonly number[];
  readonly left_out: number;
}

/** What the workbench asks about: a window, tracks, and a search, each if there is one. */
export interface Scope {
  readonly begin: number;
  readonly end: number;
  readonly tracks: readonly string[];
  readonly text: string;
  readonly regex: boolean;
}

export interface SearchAnswer {
  readonly total: number;
  readonly bins: readonly number[];
  readonly types: string;
  readonly place: { readonly number: number; readonly spot: Spot } | null;
}

/** Slices of one row of a track, as columns; times are `begin + unit * start`. */
export interface LaneSlices {
  readonly level: number;
  readonly begin: number;
  readonly unit: number;
  readonly start: Int32Array;
  readonly end: Int32Array;
  readonly busy: Float32Array;
  readonly count: Int32Array;
  readonly type: Int32Array;
  readonly event: Int32Array;
  readonly kind: Uint8Array;
}

export interface CounterValues {
  readonly begin: number;
  readonly cell: Int32Array;
  readonly low: Float32Array;
  readonly high: Float32Array;
  readonly last: Float32Array;
}

export interface WindowAnswer {
  readonly begin: number;
  readonly level: number;
  readonly cells: number;
  readonly lanes: ReadonlyMap<string, LaneSlices>;
  /** One array a group, in the order in which groups were asked for. */
  readonly loads: readonly Float32Array[];
  readonly counters: readonly CounterValues[];
  /** The shares of causes, one array a ribbon. */
  readonly causes: readonly Uint8Array[];
}

interface Head {
  readonly begin_ps: number;
  readonly level: number;
  readonly cells: number;
  readonly causes: number;
  readonly unit_ps: number;
  readonly columns: readonly (readonly [string, string, number])[];
}

type Column = Float64Array | Float32Array | Int32Array | Uint8Array;

const TYPES: Readonly<Record<string, new (buffer: ArrayBuffer, at: number, length: number) => Column>> = {
  f8: Float64Array,
  f4: Float32Array,
  i4: Int32Array,
  u1: Uint8Array,
};

/** The windows of an answer, one after the other. */
export function decodeWindows(buffer: ArrayBuffer): WindowAnswer[] {
  const found: WindowAnswer[] = [];
  for (let at = 0; at < buffer.byteLength; ) {
    const { answer, end } = decodeWindow(buffer, at);
    found.push(answer);
    at = Math.ceil(end / 8) * 8;
  }
  return found;
}

function decodeWindow(buffer: ArrayBuffer, first: number): { answer: WindowAnswer; end: number } {
  const size = new DataView(buffer).getUint32(first, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, first + 4, size))) as Head;
  const columns = new Map<string, Column>();
  let at = first + 4 + size;
  for (const [name, type, length] of head.columns) {
    const Type = TYPES[type];
    if (!Type) throw new Error(`the server sent a column of an unknown type ${type}`);
    const column = new Type(buffer, at, length);
    columns.set(name, column);
    at += column.byteLength;
  }
  const answer = {
    begin: head.begin_ps,
    level: head.level,
    cells: head.cells,
    lanes: lanesOf(head, columns),
    loads: split(columns.get("load") as Float32Array | undefined, head.cells),
    causes: split(columns.get("causes") as Uint8Array | undefined, head.cells * head.causes),
    counters: countersOf(head, columns),
  };
  return { answer, end: at };
}

function lanesOf(head: Head, columns: ReadonlyMap<string, Column>): Map<string, LaneSlices> {
  const get = <T extends Column>(name: string) => columns.get(name) as T;
  const line = get<Int32Array>("row_line");
  const lane = get<Int32Array>("row_lane");
  const level = get<Int32Array>("row_level");
  const begin = get<Int32Array>("row_begin");
  const found = new Map<string, LaneSlices>();
  for (let row = 0; row < line.length; row += 1) {
    const a = begin[row] as number;
    const b = begin[row + 1] as number;
    found.set(`${line[row]}.${lane[row]}`, {
      level: level[row] as number,
      begin: head.begin_ps,
      unit: head.unit_ps,
      start: get<Int32Array>("start").subarray(a, b),
      end: get<Int32Array>("end").subarray(a, b),
      busy: get<Float32Array>("busy_ps").subarray(a, b),
      count: get<Int32Array>("count").subarray(a, b),
      type: get<Int32Array>("type").subarray(a, b),
      event: get<Int32Array>("event").subarray(a, b),
      kind: get<Uint8Array>("kind").subarray(a, b),
    });
  }
  return found;
}

function split<T extends Float32Array | Uint8Array>(all: T | undefined, size: number): T[] {
  if (!all) return [];
  return Array.from({ length: all.length / size }, (_, n) => all.subarray(n * size, (n + 1) * size) as T);
}

function countersOf(head: Head, columns: ReadonlyMap<string, Column>): CounterValues[] {
  const begin = columns.get("counter_begin") as Int32Array | undefined;
  if (!begin) return [];
  const part = <T extends Column>(name: string, n: number) =>
    (columns.get(name) as T).subarray(begin[n] as number, begin[n + 1] as number) as T;
  return Array.from({ length: begin.length - 1 }, (_, n) => ({
    begin: head.begin_ps,
    cell: part<Int32Array>("counter_cell", n),
    low: part<Float32Array>("counter_low", n),
    high: part<Float32Array>("counter_high", n),
    last: part<Float32Array>("counter_last", n),
  }));
}

/** The routes of one host's timeline. */
export class Source {
  constructor(
    private readonly session: string,
    readonly host: string | null,
    /** Whether the Python calls of libraries are folded. */
    readonly ownCode = false,
  ) {}

  /** Whether a server is behind it, with files to send and a console for SQL. */
  readonly isServed: boolean = true;

  private url(path: string, query: Readonly<Record<string, string | number | null>> = {}): string {
    const texts: Record<string, string | null> = { host: this.host, code: this.ownCode ? "own" : null };
    for (const [key, value] of Object.entries(query)) texts[key] = value === null ? null : String(value);
    return address(`api/sessions/${encodeURIComponent(this.session)}/timeline/${path}`, texts);
  }

  /** Where the trace is as a file for another viewer. */
  file = (form: string) =>
    address(`api/sessions/${encodeURIComponent(this.session)}/trace/${form}`, { host: this.host });

  tracks = () => getJson<Tracks>(this.url("tracks"));
  steps = () => getJson<Steps>(this.url("steps"));
  names = (page: number) => getJson<{ first: number; names: string[] }>(this.url(`names/${page}`));
  event = (event: number, abort?: AbortSignal) => getJson<EventDetails>(this.url(`events/${event}`), abort);
  links = (event: number, abort?: AbortSignal) => getJson<EventLinks>(this.url(`events/${event}/links`), abort);

  stretch = ({ ribbon, begin, end, cause }: Span & { ribbon: string; cause: string }, abort?: AbortSignal) =>
    getJson<Stretch | null>(
      this.url("stretch", { ribbon, begin: Math.floor(begin), end: Math.ceil(end), cause }),
      abort,
    );

  search(
    text: string,
    regex: boolean,
    bins: number,
    from?: { direction: "next" | "previous"; ps: number; event: number },
  ): Promise<SearchAnswer> {
    const query = { text, regex: regex ? 1 : null, bins };
    return getJson(
      this.url(
        "search",
        from ? { ...query, direction: from.direction, from_ps: Math.round(from.ps), from_event: from.event } : query,
      ),
    );
  }

  selection(
    begin: number,
    end: number,
    tracks: readonly string[],
    by: string,
    abort?: AbortSignal,
  ): Promise<SelectionSum> {
    const query = { begin: Math.floor(begin), end: Math.ceil(end), tracks: tracks.join(","), by };
    return getJson(this.url("selection", query), abort);
  }

  slices(scope: Scope, top: number, abort?: AbortSignal): Promise<SlicesAnswer> {
    return getJson(this.url("slices", { ...queryOf(scope), top }), abort);
  }

  callTree(scope: Scope, inverted: boolean, hidden: readonly string[], abort?: AbortSignal): Promise<CallTreeAnswer> {
    const url = this.url("calltree", { ...queryOf(scope), inverted: inverted ? 1 : null });
    return getJson(url + hidden.map((name) => `&hide=${encodeURIComponent(name)}`).join(""), abort);
  }

  /** A window, and as many as long after it as make `tiles`. */
  async windows(span: Span, width: number, tracks: readonly string[], tiles = 1): Promise<WindowAnswer[]> {
    const query = { ...span, width, tiles: tiles > 1 ? tiles : null, tracks: tracks.join(",") };
    const response = await fetchAnswer(this.url("window", query));
    if (!response.ok)
      throw new ApiError(`the server answered a window with status ${response.status}`, "", [], response.status);
    return decodeWindows(await response.arrayBuffer());
  }
}

function queryOf({ begin, end, tracks, text, regex }: Scope): Record<string, string | number | null> {
  return {
    begin: Math.floor(begin),
    end: Math.ceil(end),
    tracks: tracks.join(",") || null,
    text: text || null,
    regex: regex ? 1 : null,
  };
}
