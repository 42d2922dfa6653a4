/**
 * The parts of the trace that the page holds: tiles of 512 cells, at the levels that were looked at.
 *
 * While a tile is on its way, what a wider or a narrower level knows of its stretch stands in, so that nothing is ever
 * blank.  One request is for all tiles that the screen lacks.  Its answer holds all rows it was asked for, some with
 * wider cells where they would have been too many bytes; those are asked for again, fewer at a time.
 */

import { levelFor, type Span } from "./viewport";
import type { CounterValues, LaneSlices, WindowAnswer } from "./wire";

export const CELLS = 512;

const MOST_REQUESTS = 4;
const MOST_TILES = 16_000;
const RETRY_MS = 1500;
/** Rows in one request: at first, and where the answer had to use wider cells. */
const ROWS_AT_ONCE = [240, 10, 2] as const;
const LOADS_AT_ONCE = 8;
const COUNTERS_AT_ONCE = 3;
/** Neighbours in one request; the server takes at most 16. */
const TILES_AT_ONCE = 16;
const COARSER = 16;
const FINER = 3;

export interface Tile {
  readonly lane: LaneSlices | null;
  readonly load: Float32Array | null;
  readonly counter: CounterValues | null;
  /** The shares of causes: those of the first in all cells, then those of the second. */
  readonly causes: Uint8Array | null;
  /** Start of the tile and the size of its cells, ps. */
  readonly begin: number;
  readonly cell: number;
  /** How often it was asked for; -1 once it is as fine as it gets. */
  tries: number;
  used: number;
}

/** A part of the window that one tile fills. */
export interface Piece {
  readonly tile: Tile;
  readonly begin: number;
  readonly end: number;
}

export type Fetch = (
  first: Span,
  width: number,
  tracks: readonly string[],
  tiles: number,
) => Promise<readonly WindowAnswer[]>;

interface Wanted {
  readonly level: number;
  readonly index: number;
  readonly id: string;
  readonly urgent: boolean;
  readonly tries: number;
}

/** Rows of `tiles` neighbours, from the one with this index on. */
interface Request {
  readonly level: number;
  readonly index: number;
  tiles: number;
  readonly ids: readonly string[];
}

export class Tiles {
  /** Why the last request failed; null once one succeeds. */
  error: string | null = null;
  /** Times of the last answers in ms, for measurements. */
  readonly times: number[] = [];
  private readonly tiles = new Map<string, Tile>();
  private readonly wanted = new Map<string, Wanted>();
  private readonly onTheWay = new Set<string>();
  private running = 0;
  private frame = 0;
  private quietUntil = 0;

  constructor(
    private readonly fetchTiles: Fetch,
    private readonly changed: () => void,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** True while something that is on the screen is not there in full. */
  get isLoading(): boolean {
    return this.running > 0;
  }

  startFrame(): void {
    this.frame += 1;
    this.wanted.clear();
  }

  /** Rows that are here already, whole, and are asked for nowhere. */
  own: ReadonlyMap<string, LaneSlices> = new Map();

  /** What there is of a row in a window, left to right; what lacks is noted, to be asked for by `endFrame`. */
  pieces(id: string, span: Span, width: number): Piece[] {
    if (isOwn(id)) return this.ownPieces(id);
    const { level, first, count } = placesOf(span, width);
    const found: Piece[] = [];
    for (let at = 0; at < count; at += 1) this.collect(id, level, first + at, found);
    this.note(id, level, first - 1, false);
    this.note(id, level, first + count, false);
    return found;
  }

  private ownPieces(id: string): Piece[] {
    const lane = this.own.get(id);
    if (!lane?.end.length) return [];
    const end = lane.begin + lane.unit * (lane.end.at(-1) as number);
    const none = { load: null, counter: null, causes: null };
    const tile = { lane, ...none, begin: lane.begin, cell: lane.unit, tries: -1, used: this.frame };
    return [{ tile, begin: lane.begin, end }];
  }

  /** What there is already of a row in a window, without asking for more. */
  peek(id: string, span: Span, width: number): Piece[] {
    if (isOwn(id)) return this.ownPieces(id);
    const { level, first, count } = placesOf(span, width);
    return Array.from({ length: count }, (_, at) => this.tiles.get(key(id, level, first + at))).flatMap((tile) =>
      tile ? [{ tile, begin: tile.begin, end: tile.begin + CELLS * tile.cell }] : [],
    );
  }

  /** Has a window loaded that may be looked at next. */
  prefetch(id: string, span: Span, width: number): void {
    if (isOwn(id)) return;
    const { level, first, count } = placesOf(span, width);
    for (let at = 0; at < count; at += 1) this.note(id, level, first + at, false);
  }

  private collect(id: string, level: number, index: number, into: Piece[]): void {
    const size = CELLS * 2 ** level;
    const begin = index * size;
    const exact = this.note(id, level, index, true);
    if (exact) into.push({ tile: exact, begin, end: begin + size });
    else if (!this.fromFiner(id, level, index, FINER, into)) {
      const coarser = this.fromCoarser(id, level, index);
      if (coarser) into.push({ tile: coarser, begin, end: begin + size });
    }
  }

  private fromCoarser(id: string, level: number, index: number): Tile | null {
    for (let up = 1; up <= COARSER; up += 1) {
      const tile = this.tiles.get(key(id, level + up, Math.floor(index / 2 ** up)));
      if (tile) {
        tile.used = this.frame;
        return tile;
      }
    }
    return null;
  }

  /** Fills a tile's stretch from finer ones; only if they cover all of it. */
  private fromFiner(id: string, level: number, index: number, depth: number, into: Piece[]): boolean {
    if (depth === 0 || level === 0) return false;
    const parts: Piece[] = [];
    for (const child of [2 * index, 2 * index + 1]) {
      const tile = this.tiles.get(key(id, level - 1, child));
      const size = CELLS * 2 ** (level - 1);
      if (tile) {
        tile.used = this.frame;
        parts.push({ tile, begin: child * size, end: (child + 1) * size });
      } else if (!this.fromFiner(id, level - 1, child, depth - 1, parts)) return false;
    }
    into.push(...parts);
    return true;
  }

  /** The tile, if there is one; notes it if it lacks or could be finer. */
  private note(id: string, level: number, index: number, urgent: boolean): Tile | null {
    const name = key(id, level, index);
    const tile = this.tiles.get(name);
    if (tile) tile.used = this.frame;
    const tries = tile ? tile.tries : 0;
    if (tries >= 0 && (urgent || !tile) && !this.onTheWay.has(name)) {
      const noted = this.wanted.get(name);
      if (!noted || (urgent && !noted.urgent)) this.wanted.set(name, { level, index, id, urgent, tries });
    }
    return tile ?? null;
  }

  endFrame(): void {
    if (this.now() < this.quietUntil) return;
    const requests = requestsFor([...this.wanted.values()]);
    for (const request of requests) {
      if (this.running >= MOST_REQUESTS) return;
      void this.ask(request);
    }
  }

  private async ask(request: Request): Promise<void> {
    const { level, index, tiles, ids } = request;
    const size = CELLS * 2 ** level;
    const names = indices(request).flatMap((each) => ids.map((id) => key(id, level, each)));
    for (const name of names) {
      this.onTheWay.add(name);
      this.wanted.delete(name);
    }
    this.running += 1;
    const started = this.now();
    try {
      const first = { begin: index * size, end: (index + 1) * size };
      const answers = await this.fetchTiles(first, CELLS, grouped(ids), tiles);
      this.times.push(this.now() - started);
      if (this.times.length > 500) this.times.shift();
      for (const [at, answer] of answers.entries()) this.store(level, index + at, ids, answer);
      this.error = null;
    } catch (error) {
      this.error = error instanceof Error ? error.message : String(error);
      this.quietUntil = this.now() + RETRY_MS;
      globalThis.setTimeout(this.changed, RETRY_MS + 10);
    } finally {
      this.running -= 1;
      for (const name of names) this.onTheWay.delete(name);
      this.evict();
      this.changed();
    }
  }

  private store(level: number, index: number, ids: readonly string[], answer: WindowAnswer): void {
    const cell = 2 ** level;
    const begin = index * CELLS * cell;
    let loads = 0;
    let counters = 0;
    let ribbons = 0;
    for (const id of ids) {
      const name = key(id, level, index);
      const before = this.tiles.get(name)?.tries ?? 0;
      const sort = sortOf(id);
      const lane = sort === "row" ? (answer.lanes.get(id.slice(1)) ?? null) : null;
      const counter = sort === "counter" ? (answer.counters[counters++] ?? null) : null;
      const causes = sort === "ribbon" ? (answer.causes[ribbons++] ?? null) : null;
      const load = sort === "group" ? (answer.loads[loads++] ?? null) : null;
      const isFinest = !lane || lane.level <= level || before + 1 >= ROWS_AT_ONCE.length;
      const tries = isFinest ? -1 : before + 1;
      this.tiles.set(name, { lane, load, counter, causes, begin, cell, tries, used: this.frame });
    }
  }

  private evict(): void {
    if (this.tiles.size <= MOST_TILES) return;
    const oldest = [...this.tiles].sort((a, b) => a[1].used - b[1].used).slice(0, MOST_TILES / 4);
    for (const [name, tile] of oldest) if (tile.used < this.frame) this.tiles.delete(name);
  }
}

/** The tiles that a window needs: their level, the first and how many. */
function placesOf(span: Span, width: number): { level: number; first: number; count: number } {
  const level = levelFor(span, width);
  const size = CELLS * 2 ** level;
  const first = Math.floor(span.begin / size);
  return { level, first, count: Math.ceil(span.end / size) - first };
}

function isOwn(id: string): boolean {
  return /^q(?:\d|uery)/.test(id);
}

type Sort = "row" | "counter" | "ribbon" | "group";

function sortOf(id: string): Sort {
  const found = /^([ctr])\d/.exec(id)?.[1];
  return found === "t" ? "row" : found === "c" ? "counter" : found === "r" ? "ribbon" : "group";
}

function key(id: string, level: number, index: number): string {
  return `${id}|${level}|${index}`;
}

/** Requests in the order in which they should go: what is on the screen, then its finer form, then its neighbours. */
export function requestsFor(wanted: readonly Wanted[]): Request[] {
  const batches = new Map<string, { rank: number; level: number; index: number; tries: number; ids: string[] }>();
  for (const { level, index, id, urgent, tries } of wanted) {
    // Ribbons wait for the account, which takes longer than all the rest.
    const isRibbon = sortOf(id) === "ribbon";
    const rank = (urgent ? 0 : 10) + tries + (isRibbon ? 1 : 0);
    const name = `${level}|${index}|${rank}|${isRibbon}`;
    const batch = batches.get(name) ?? { rank, level, index, tries, ids: [] };
    batch.ids.push(id);
    batches.set(name, batch);
  }
  const ordered = [...batches.values()].sort((a, b) => a.rank - b.rank || a.index - b.index);
  const found: Request[] = [];
  const last = new Map<string, Request>();
  for (const { rank, level, index, tries, ids } of ordered)
    for (const part of partsOf(ids, tries)) {
      const rows = `${rank}|${level}|${part.join()}`;
      const before = last.get(rows);
      if (before && before.index + before.tiles === index && before.tiles < TILES_AT_ONCE) before.tiles += 1;
      else {
        const request = { level, index, tiles: 1, ids: part };
        found.push(request);
        last.set(rows, request);
      }
    }
  return found;
}

/** Ids in parts that one request may be for. */
function partsOf(ids: readonly string[], tries: number): string[][] {
  const most = {
    row: ROWS_AT_ONCE[tries] ?? 1,
    group: LOADS_AT_ONCE,
    ribbon: LOADS_AT_ONCE,
    counter: COUNTERS_AT_ONCE,
  };
  const seen = { row: 0, group: 0, ribbon: 0, counter: 0 };
  const parts: string[][] = [];
  for (const id of ids) {
    const sort = sortOf(id);
    const at = Math.floor(seen[sort]++ / most[sort]);
    parts[at] = [...(parts[at] ?? []), id];
  }
  return parts;
}

function indices({ index, tiles }: Request): number[] {
  return Array.from({ length: tiles }, (_, at) => index + at);
}

/** `t3.0,t3.1,t3.2` as `t3.0-2`; the others as they are and in their order. */
export function grouped(ids: readonly string[]): string[] {
  const found: string[] = [];
  let line = "";
  let first = 0;
  let last = -2;
  for (const id of ids) {
    const [name = "", row] = sortOf(id) === "row" ? id.split(".") : [id];
    if (row !== undefined && name === line && Number(row) === last + 1) {
      last += 1;
      found[found.length - 1] = `${line}.${first}-${last}`;
      continue;
    }
    found.push(id);
    line = row === undefined ? "" : name;
    first = last = Number(row ?? -2);
  }
  return found;
}
