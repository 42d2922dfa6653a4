/** The state of one timeline: what is looked at, what is chosen, what was found. */
import { batch, computed, signal } from "@preact/signals";
import type { Evidence, Mark } from "./address";
import {
  type Choices,
  collapsedAtFirst,
  findTrack,
  type Hit,
  hiddenAtFirst,
  type Item,
  itemAt,
  layoutOf,
  pathTo,
} from "./layout";
import { Names } from "./names";
import type { QueryTracks } from "./query";
import { Tiles } from "./tiles";
import { around, between, clamp, levelFor, pan, type Run, type Span, toTime, zoomAt } from "./viewport";
import type {
  ArrowEnd,
  EventDetails,
  EventLinks,
  GroupInfo,
  Scope,
  SearchAnswer,
  SelectionAnswer,
  Source,
  Spot,
  Steps,
  Stretch,
  TrackInfo,
  Tracks,
} from "./wire";

export const TOOLS = ["select", "pan", "zoom", "measure"] as const;
export type Tool = (typeof TOOLS)[number];

export interface Region extends Span {
  /** The tracks it covers; null for all that are on the page. */
  readonly tracks: readonly string[] | null;
}

/** What the events of a region are summed by. */
export type SumBy = "name" | "op" | "track";

export interface Sought {
  readonly text: string;
  readonly regex: boolean;
}

export interface Found extends Sought {
  /** Whether what is not found fades: where the reader searched, not where a link of the page did. */
  readonly fades: boolean;
  readonly total: number;
  readonly bins: readonly number[];
  readonly types: Uint8Array;
  readonly number: number | null;
}

export interface Hover {
  readonly x: number;
  readonly y: number;
  readonly hit: Hit;
  readonly time: number;
}

export type ArrowPair = readonly [ArrowEnd, ArrowEnd];

const SEARCH_BINS = 512;
const GLIDE_MS = 140;
const ZOOM_STEP = 0.72;
const PAN_STEP = 0.18;

export class Model {
  readonly whole: Span;
  readonly span = signal<Span>({ begin: 0, end: 1 });
  readonly tool = signal<Tool>("pan");
  readonly selected = signal<Spot | null>(null);
  readonly details = signal<EventDetails | null>(null);
  readonly links = signal<EventLinks | null>(null);
  readonly problem = signal<string | null>(null);
  readonly region = signal<Region | null>(null);
  readonly summary = signal<SelectionAnswer | null>(null);
  readonly sumBy = signal<SumBy>("name");
  /** The chosen stretch of a ribbon, and what the server says of it. */
  readonly run = signal<Run | null>(null);
  readonly stretch = signal<Stretch | null>(null);
  readonly marks = signal<readonly Mark[]>([]);
  /** What a page points to. */
  readonly evidence = signal<Evidence | null>(null);
  /** What is looked for; `found` follows when the answer is there. */
  readonly sought = signal<Sought | null>(null);
  readonly found = signal<Found | null>(null);
  readonly searchProblem = signal<string | null>(null);
  readonly steps = signal<Steps | null>(null);
  readonly hover = signal<Hover | null>(null);
  readonly choices = signal<Choices>({ collapsed: new Set(), hidden: new Set(), pinned: [] });
  /** The answer of a query, as tracks above the others. */
  readonly query = signal<QueryTracks | null>(null);
  /** The tracks that are drawn, where these are not the reader's to choose. */
  readonly fixed = signal<readonly Item[] | null>(null);
  readonly layout = computed(() => {
    const items = this.fixed.value;
    if (items) return { items, height: heightOf(items), pinnedItems: [], pinnedHeight: 0 };
    const query = this.query.value;
    return layoutOf(query ? [query.group, ...this.tracks.groups] : this.tracks.groups, this.choices.value);
  });
  /** Counts answers, for what is read off them. */
  readonly arrived = signal(0);
  /** Shows what is folded, and an event of it. */
  unfold: (event: number) => void = () => undefined;
  readonly peaks = new Map<string, number>();
  readonly tiles: Tiles;
  readonly names: Names;
  readonly kinds: ReadonlyMap<number, string>;
  /** Size of the canvas of the tracks, CSS pixels. */
  width = 1000;
  height = 500;
  /** How far down the page of tracks is scrolled; and a way to scroll it. */
  scrollTop = 0;
  scrollTo: (top: number) => void = () => undefined;
  /** Asks for a new picture. */
  redraw: () => void = () => undefined;
  /** The event that is chosen, whose facts may be under way. */
  chosen: number | null = null;
  /** The event that was gone to last, known before its facts are. */
  private goingTo: Spot | null = null;
  /** To be brought into view when the pane has taken its place. */
  private toReveal: Spot | null = null;
  private glide = 0;
  private asking = new AbortController();
  private askingRegion = new AbortController();

  constructor(
    readonly source: Source,
    readonly tracks: Tracks,
  ) {
    this.whole = { begin: tracks.span_ps[0], end: Math.max(tracks.span_ps[1], tracks.span_ps[0] + 1000) };
    this.span.value = this.home();
    const { groups } = tracks;
    this.choices.value = { collapsed: collapsedAtFirst(groups), hidden: hiddenAtFirst(groups), pinned: [] };
    this.tiles = new Tiles(source.windows.bind(source), () => {
      this.arrived.value += 1;
      this.redraw();
    });
    this.names = new Names(source.names, tracks.names_a_page, () => this.redraw());
    this.kinds = new Map(Object.entries(tracks.kinds).map(([name, value]) => [value, name]));
    void this.loadSteps();
  }

  private async loadSteps(): Promise<void> {
    try {
      this.steps.value = await this.source.steps();
    } catch {
      this.steps.value = null; // the ruler has no steps then; everything else works
    }
  }

  // -- the window ------------------------------------------------------------------------------------------------

  show(span: Span, how: "at once" | "gliding" = "gliding"): void {
    cancelAnimationFrame(this.glide);
    const to = clamp(span, this.whole);
    if (how === "at once" || window.matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.span.value = to;
      return;
    }
    const from = this.span.peek();
    const started = performance.now();
    const step = (now: number) => {
      const share = Math.min(1, Math.max(0, (now - started) / GLIDE_MS));
      this.span.value = between(from, to, 1 - (1 - share) ** 3);
      if (share < 1) this.glide = requestAnimationFrame(step);
    };
    this.target = to;
    this.glide = requestAnimationFrame(step);
  }

  /** Where a glide under way will end, so that keys pressed in a row add up. */
  private target: Span | null = null;

  private base(): Span {
    return this.target && performance.now() - this.lastKey < GLIDE_MS ? this.target : this.span.peek();
  }

  private lastKey = -1e9;

  zoomKey(direction: 1 | -1): void {
    const x = this.hover.peek()?.x ?? this.width / 2;
    const next = zoomAt(this.base(), this.width, x, direction > 0 ? ZOOM_STEP : 1 / ZOOM_STEP, this.whole);
    this.lastKey = performance.now();
    this.show(next);
  }

  panKey(direction: 1 | -1): void {
    const next = pan(this.base(), this.width, direction * this.width * PAN_STEP, this.whole);
    this.lastKey = performance.now();
    this.show(next);
  }

  fit(): void {
    const run = this.stretch.peek();
    const chosen = this.region.peek() ?? (run ? { begin: run.begin_ps, end: run.end_ps } : null) ?? this.selectedSpan();
    if (chosen) this.show(around(chosen, this.whole, chosen === this.region.peek() ? 0.02 : 0.15));
    else this.fitAll();
  }

  /** Shows all steps; where these are shown, what was recorded before and after as well. */
  fitAll(): void {
    const span = this.span.peek();
    const home = this.home();
    const isHome = Math.abs(span.begin - home.begin) + Math.abs(span.end - home.end) < 1e-6 * (home.end - home.begin);
    this.show(isHome ? this.whole : home);
  }

  /** What fits first: all steps and their work. */
  home(): Span {
    return { begin: this.tracks.activity_ps[0], end: this.tracks.activity_ps[1] };
  }

  selectedSpan(): Span | null {
    const spot = this.selected.peek();
    return spot && { begin: spot.start_ps, end: spot.start_ps + spot.duration_ps };
  }

  timeAt(x: number): number {
    return toTime(this.span.peek(), this.width, x);
  }

  hitAt(y: number): Hit | null {
    return itemAt(this.layout.peek().items, y + this.scrollTop);
  }

  // -- an event --------------------------------------------------------------------------------------------------

  /** Chooses an event; null none.  `stays` leaves the tracks where they are. */
  async select(event: number | null, stays = false): Promise<void> {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal: abort } = this.asking;
    this.chosen = event;
    this.toReveal = null;
    if (event === null) {
      batch(() => {
        this.selected.value = null;
        this.details.value = null;
        this.links.value = null;
        this.run.value = null;
        this.stretch.value = null;
      });
      return;
    }
    try {
      const details = await this.source.event(event, abort);
      if (abort.aborted) return;
      if (details.spot.lane < 0 && this.source.ownCode) {
        this.unfold(event);
        return;
      }
      if (!stays) {
        if (this.details.peek() || this.region.peek()) this.reveal(details.spot);
        else this.toReveal = details.spot;
      }
      batch(() => {
        this.region.value = null;
        this.summary.value = null;
        this.run.value = null;
        this.stretch.value = null;
        this.selected.value = details.spot;
        this.details.value = details;
        this.links.value = null;
        this.problem.value = null;
      });
      const links = await this.source.links(event, abort);
      if (!abort.aborted) this.links.value = links;
    } catch (error) {
      if (abort.aborted) return;
      this.chosen = this.selected.peek()?.event ?? null;
      this.problem.value = String(error instanceof Error ? error.message : error);
    }
  }

  /** Chooses an event and brings it into view. */
  async goTo(spot: Spot, how: "centre" | "fit" = "centre"): Promise<void> {
    this.goingTo = spot;
    this.reveal(spot);
    const span = this.span.peek();
    const wide = span.end - span.begin;
    const end = spot.start_ps + spot.duration_ps;
    const isTiny = spot.duration_ps > 0 && (spot.duration_ps / wide) * this.width < 2;
    if (how === "fit" || isTiny || spot.duration_ps > wide) {
      this.show(around({ begin: spot.start_ps, end }, this.whole, isTiny && how !== "fit" ? 12 : 0.3));
    } else if (spot.start_ps < span.begin || end > span.end) {
      const middle = (spot.start_ps + end) / 2;
      this.show({ begin: middle - wide / 2, end: middle + wide / 2 });
    }
    await this.select(spot.event);
  }

  /** The canvas has another size; what was chosen before the pane opened below may lie behind it. */
  resized(width: number, height: number): void {
    const isLower = height < this.height;
    this.width = width;
    this.height = height;
    if (!isLower || !this.toReveal) return;
    this.reveal(this.toReveal);
    this.toReveal = null;
  }

  /** Opens the groups that an event is in, and scrolls to its row. */
  private reveal(spot: Spot): void {
    const id = `t${spot.line}`;
    const { collapsed, hidden, pinned } = this.choices.peek();
    const path = pathTo(this.tracks.groups, id);
    const shut = [...path, ...(spot.lane > 0 ? [id] : [])].filter((each) => collapsed.has(each) || hidden.has(each));
    if (shut.length || hidden.has(id)) {
      const without = (set: ReadonlySet<string>) =>
        new Set([...set].filter((each) => !shut.includes(each) && each !== id));
      this.choices.value = { collapsed: shut.length ? without(collapsed) : collapsed, hidden: without(hidden), pinned };
    }
    const item = this.layout.peek().items.find((each) => each.id === id);
    if (!item) return;
    const top = item.top + spot.lane * item.row;
    if (top >= this.scrollTop + 20 && top <= this.scrollTop + this.height - 40) return;
    const scroll = () => this.scrollTo(Math.max(0, top - this.height / 3));
    if (shut.length)
      requestAnimationFrame(scroll); // the page is as long as it has to be only when it is drawn
    else scroll();
  }

  neighbour(which: "previous" | "next" | "above" | "below"): boolean {
    const details = this.details.peek();
    if (!details) return false;
    const to = which === "above" ? details.around.at(-1) : which === "below" ? details.first_inside : details[which];
    if (to) void this.goTo(to);
    return true;
  }

  // -- a ribbon --------------------------------------------------------------------------------------------------

  /** The ribbons of the devices, or of the host without any. */
  ribbons(): string[] {
    return this.tracks.groups.flatMap((group) => (group.ribbon ? [group.ribbon] : []));
  }

  /** Chooses a stretch of a ribbon and asks what it is spent on. */
  async chooseRun(run: Run): Promise<void> {
    await this.choose(null);
    await this.select(null);
    const { signal: abort } = this.asking;
    this.run.value = run;
    await this.unlessAborted(abort, this.source.stretch(run, abort), (found) => {
      this.stretch.value = found;
      if (found) this.run.value = { ...run, begin: found.begin_ps, end: found.end_ps };
    });
  }

  /** Takes an answer, or says why there is none, unless something else was asked meanwhile. */
  private async unlessAborted<T>(abort: AbortSignal, asked: Promise<T>, take: (answer: T) => void): Promise<void> {
    try {
      const answer = await asked;
      if (!abort.aborted) take(answer);
    } catch (error) {
      if (!abort.aborted) this.problem.value = String(error instanceof Error ? error.message : error);
    }
  }

  // -- a region --------------------------------------------------------------------------------------------------

  async choose(region: Region | null): Promise<void> {
    this.askingRegion.abort();
    this.askingRegion = new AbortController();
    const { signal: abort } = this.askingRegion;
    batch(() => {
      this.region.value = region;
      this.summary.value = null;
    });
    if (!region) return;
    await this.select(null);
    const tracks = region.tracks ?? this.shownTracks();
    const asked = this.source.selection(region.begin, region.end, tracks, this.sumBy.peek(), abort);
    await this.unlessAborted(abort, asked, (answer) => {
      this.summary.value = answer;
    });
  }

  sumUpBy(by: SumBy): void {
    this.sumBy.value = by;
    void this.choose(this.region.peek());
  }

  /** What stands for everything on the page in a question: groups whose tracks are all shown, else tracks. */
  shownTracks(): string[] {
    const { hidden } = this.choices.peek();
    const walk = (group: GroupInfo): string[] => {
      if (hidden.has(group.id)) return [];
      return [
        ...group.tracks.filter((track) => track.line >= 0 && !hidden.has(track.id)).map((track) => track.id),
        ...group.groups.flatMap(walk),
      ];
    };
    return this.tracks.groups.flatMap(walk);
  }

  track(line: number): TrackInfo | null {
    return findTrack(this.tracks.groups, `t${line}`);
  }

  // -- marks, search ---------------------------------------------------------------------------------------------

  mark(): void {
    const span = this.region.peek() ?? this.selectedSpan();
    if (!span) return;
    const same = (each: Span) => each.begin === span.begin && each.end === span.end;
    const marks = this.marks.peek();
    this.marks.value = marks.some(same)
      ? marks.filter((each) => !same(each))
      : [...marks, { begin: span.begin, end: span.end, name: this.selected.peek()?.name.slice(0, 60) ?? "" }];
  }

  renameMark(at: number, name: string): void {
    this.marks.value = this.marks.peek().map((mark, index) => (index === at ? { ...mark, name } : mark));
  }

  deleteMark(at: number): void {
    this.marks.value = this.marks.peek().filter((_, index) => index !== at);
  }

  async search(text: string, regex: boolean, fades = false): Promise<void> {
    const sought = text ? { text, regex } : null;
    this.fades = fades;
    this.sought.value = sought;
    if (!text) {
      batch(() => {
        this.found.value = null;
        this.searchProblem.value = null;
      });
      return;
    }
    try {
      const answer = await this.source.search(text, regex, SEARCH_BINS);
      if (this.sought.peek() === sought) this.take(text, regex, answer);
    } catch (error) {
      if (this.sought.peek() !== sought) return;
      batch(() => {
        this.found.value = null;
        this.searchProblem.value = String(error instanceof Error ? error.message : error);
      });
    }
  }

  async step(direction: "next" | "previous"): Promise<void> {
    const found = this.found.peek();
    if (!found?.total) return;
    const spot = this.goingTo?.event === this.chosen ? this.goingTo : this.selected.peek();
    const from = { direction, ps: spot ? spot.start_ps : this.span.peek().begin, event: spot ? spot.event : -1 };
    const answer = await this.source.search(found.text, found.regex, SEARCH_BINS, from);
    this.take(found.text, found.regex, answer);
    if (answer.place) await this.goTo(answer.place.spot);
  }

  /** Goes to the longest match of the search. */
  async goToLongest(): Promise<void> {
    const sought = this.sought.peek();
    if (!sought) return;
    const answer = await this.source.slices({ ...this.whole, tracks: [], ...sought }, 1);
    const [longest] = answer.slices;
    if (!longest || this.sought.peek() !== sought) return;
    const itself = { direction: "previous" as const, ps: longest.start_ps, event: longest.event + 1 };
    this.take(sought.text, sought.regex, await this.source.search(sought.text, sought.regex, SEARCH_BINS, itself));
    await this.goTo(longest, "fit");
  }

  /** What the workbench is about: the selected region, else the window; and the search, if there is one. */
  scope(): Scope {
    const region = this.region.peek();
    const { begin, end } = region ?? this.span.peek();
    const sought = this.sought.peek();
    return {
      ...{ begin, end, text: sought?.text ?? "", regex: sought?.regex ?? false },
      tracks: region?.tracks ?? this.shownTracks(),
    };
  }

  /** Calls nest on host threads: without a selection, only these; a search does not cut a tree. */
  callScope(scope: Scope): Scope {
    const hosts = new Set(this.tracks.groups.filter((group) => group.kind === "host").flatMap(tracksOf));
    const tracks = scope.tracks.filter((id) => hosts.has(id));
    return { ...scope, text: "", regex: false, tracks: this.region.peek() || !tracks.length ? scope.tracks : tracks };
  }

  private fades = false;

  private take(text: string, regex: boolean, answer: SearchAnswer): void {
    const types = Uint8Array.from(atob(answer.types), (each) => each.charCodeAt(0));
    batch(() => {
      this.found.value = {
        text,
        regex,
        fades: this.fades,
        total: answer.total,
        bins: answer.bins,
        types,
        number: answer.place?.number ?? null,
      };
      this.searchProblem.value = null;
    });
  }

  /** Takes away the last thing that was chosen; false if there was nothing. */
  escape(): boolean {
    if (this.region.peek()) void this.choose(null);
    else if (this.run.peek() || this.selected.peek()) void this.select(null);
    else if (this.sought.peek()) void this.search("", false);
    else if (this.evidence.peek()) this.evidence.value = null;
    else return false;
    return true;
  }

  /** Shows the answer of a query as tracks; null takes them away. */
  showQuery(query: QueryTracks | null): void {
    this.tiles.own = query?.rows ?? new Map();
    this.names.own = query?.names ?? [];
    this.query.value = query;
  }

  // -- tracks ----------------------------------------------------------------------------------------------------

  toggle(set: "collapsed" | "hidden", id: string): void {
    const choices = this.choices.peek();
    const next = new Set(choices[set]);
    if (!next.delete(id)) next.add(id);
    this.choices.value = { ...choices, [set]: next };
  }

  togglePin(id: string): void {
    const choices = this.choices.peek();
    const pinned = choices.pinned.includes(id) ? choices.pinned.filter((each) => each !== id) : [...choices.pinned, id];
    this.choices.value = { ...choices, pinned };
  }

  showAll(): void {
    this.choices.value = { ...this.choices.peek(), hidden: new Set<string>() };
  }

  /** The level that the window is drawn at. */
  level(): number {
    return levelFor(this.span.peek(), this.width);
  }
}

export function heightOf(items: readonly Item[]): number {
  return items.reduce((sum, item) => sum + item.height, 0);
}

/** The tracks of a group and of the groups in it, and the groups themselves. */
function tracksOf(group: GroupInfo): string[] {
  return [group.id, ...group.tracks.map((track) => track.id), ...group.groups.flatMap(tracksOf)];
}
