/** Which rows are on the screen, and where: the tree of tracks with what is collapsed, hidden and pinned. */
import type { GroupInfo, TrackInfo } from "./wire";

export const ROW = 18;
/** Kernels are what the rest is for: their rows are twice as tall as those of ranges laid onto their streams. */
export const DEVICE_ROW = 32;
const RANGE_ROW = 16;
export const GAP = 5;
export const GROUP = 30;
export const RIBBON = 38;
export const COUNTER = 46;

export interface Item {
  readonly id: string;
  readonly top: number;
  readonly height: number;
  /** 0 for a group, 1 for what is in it, and so on. */
  readonly depth: number;
  readonly group: GroupInfo | null;
  readonly track: TrackInfo | null;
  readonly collapsed: boolean;
  readonly pinned: boolean;
  /** Rows of a track that are drawn: all, or the first one where it is collapsed. */
  readonly rows: number;
  /** The height of one of them. */
  readonly row: number;
}

export interface Layout {
  readonly items: readonly Item[];
  readonly height: number;
  /** Height of the pinned items, which stand above the others and do not scroll. */
  readonly pinnedItems: readonly Item[];
  readonly pinnedHeight: number;
}

export interface Choices {
  readonly collapsed: ReadonlySet<string>;
  readonly hidden: ReadonlySet<string>;
  readonly pinned: readonly string[];
}

export function layoutOf(groups: readonly GroupInfo[], choices: Choices): Layout {
  const items: Item[] = [];
  const devices = deviceTracks(groups);
  let top = 0;
  const add = (item: Omit<Item, "top">) => {
    items.push({ ...item, top });
    top += item.height;
  };
  const walk = (list: readonly GroupInfo[], depth: number) => {
    for (const group of list) {
      if (choices.hidden.has(group.id)) continue;
      const collapsed = choices.collapsed.has(group.id);
      add(groupItem(group, depth, collapsed));
      if (collapsed) continue;
      for (const track of group.tracks)
        if (!choices.hidden.has(track.id)) add(trackItem(track, depth + 1, choices, devices));
      walk(group.groups, depth + 1);
    }
  };
  walk(groups, 0);
  const pinnedItems: Item[] = [];
  let pinnedTop = 0;
  for (const id of choices.pinned) {
    const found = findTrack(groups, id);
    const group = found ? null : findGroup(groups, id);
    if (!found && !group) continue;
    const item = found ? trackItem(found, 0, choices, devices) : groupItem(group as GroupInfo, 0, true);
    pinnedItems.push({ ...item, pinned: true, top: pinnedTop });
    pinnedTop += item.height;
  }
  return { items, height: top, pinnedItems, pinnedHeight: pinnedTop };
}

function groupItem(group: GroupInfo, depth: number, collapsed: boolean): Omit<Item, "top"> {
  const height = group.ribbon ? RIBBON : GROUP;
  return { id: group.id, height, depth, group, track: null, collapsed, pinned: false, rows: 0, row: ROW };
}

function deviceTracks(groups: readonly GroupInfo[]): ReadonlySet<string> {
  const devices = groups.filter((group) => group.kind === "device");
  return new Set(devices.flatMap(({ tracks }) => workTracks(tracks).map(({ id }) => id)));
}

/** The tracks that hold a device's work itself: its streams, or the ops of one without streams. */
function workTracks(tracks: readonly TrackInfo[]): readonly TrackInfo[] {
  const streams = tracks.filter(({ kind }) => kind === "stream");
  return streams.length ? streams : tracks.filter(({ kind }) => kind === "ops");
}

/** Whether a track holds ranges laid onto a stream: those of the host, where a click leads, or scopes of programs. */
export function isProjected(track: TrackInfo): boolean {
  return track.kind === "projected" || isScoped(track);
}

/** Whether a track holds scopes of compiled programs, which are no events: a click shows the work that is in them. */
export function isScoped(track: TrackInfo): boolean {
  return track.kind === "scoped";
}

function trackItem(track: TrackInfo, depth: number, choices: Choices, devices: ReadonlySet<string>): Omit<Item, "top"> {
  const collapsed = choices.collapsed.has(track.id);
  const rows = track.line < 0 ? 0 : collapsed ? Math.min(1, track.rows) : track.rows;
  const row = devices.has(track.id) ? DEVICE_ROW : isProjected(track) ? RANGE_ROW : ROW;
  const height = track.line < 0 ? COUNTER : rows * row + GAP;
  return { id: track.id, height, depth, group: null, track, collapsed, pinned: false, rows, row };
}

export function findTrack(groups: readonly GroupInfo[], id: string): TrackInfo | null {
  for (const group of groups) {
    const found = group.tracks.find((track) => track.id === id) ?? findTrack(group.groups, id);
    if (found) return found;
  }
  return null;
}

export function findGroup(groups: readonly GroupInfo[], id: string): GroupInfo | null {
  for (const group of groups) {
    const found = group.id === id ? group : findGroup(group.groups, id);
    if (found) return found;
  }
  return null;
}

/** The groups that a track is in, the outermost first. */
export function pathTo(groups: readonly GroupInfo[], track: string): readonly string[] {
  for (const group of groups) {
    if (group.tracks.some((each) => each.id === track)) return [group.id];
    const below = pathTo(group.groups, track);
    if (below.length) return [group.id, ...below];
  }
  return [];
}

/** The items that overlap a stretch of the page; items are sorted by `top`. */
export function visibleItems(items: readonly Item[], top: number, bottom: number): readonly Item[] {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const item = items[middle] as Item;
    if (item.top + item.height <= top) low = middle + 1;
    else high = middle;
  }
  let last = low;
  while (last < items.length && (items[last] as Item).top < bottom) last += 1;
  return items.slice(low, last);
}

export interface Hit {
  readonly item: Item;
  /** The row of a track; -1 in the gap below its rows, and on groups and counters. */
  readonly lane: number;
}

/** What is at a height of the page. */
export function itemAt(items: readonly Item[], y: number): Hit | null {
  const item = visibleItems(items, y, y + 1)[0];
  if (!item || y < item.top) return null;
  if (!item.track || item.rows === 0) return { item, lane: -1 };
  const lane = Math.floor((y - item.top) / item.row);
  return { item, lane: lane < item.rows ? lane : -1 };
}

/**
 * What is hidden until the reader says otherwise: the threads of profilers, ours among them, and annotations that
 * are laid onto a further stream of the same device.
 */
export function hiddenAtFirst(groups: readonly GroupInfo[]): ReadonlySet<string> {
  const walk = (group: GroupInfo): string[] => {
    const own = group.tracks.filter((track) => track.is_profiler).map((track) => track.id);
    if (own.length && own.length === group.tracks.length && !group.groups.length) return [group.id];
    return [...own, ...repeatedRanges(group), ...group.groups.flatMap(walk)];
  };
  return new Set(groups.flatMap(walk));
}

/** Of the ranges of one sort on several streams of a device all but those on the stream with most of them. */
function repeatedRanges(group: GroupInfo): string[] {
  const ranges = group.tracks.filter((track) => track.kind === "projected");
  const most = (name: string) => Math.max(...ranges.filter((each) => each.name === name).map((each) => each.events));
  const kept = new Map<string, string>();
  for (const each of ranges) if (!kept.has(each.name) && each.events === most(each.name)) kept.set(each.name, each.id);
  return ranges.filter((each) => kept.get(each.name) !== each.id).map((each) => each.id);
}

const OPEN_DEVICES = 2;

/** What is collapsed until the reader says otherwise: pools of threads, and all devices but the first that are busy in
 *  the first picture. */
export function collapsedAtFirst(groups: readonly GroupInfo[]): ReadonlySet<string> {
  const found = new Set<string>();
  const devices = groups.filter((group) => group.kind === "device");
  const size = (group: GroupInfo) => group.tracks.reduce((sum, track) => sum + track.events_at_first, 0);
  const largest = Math.max(0, ...devices.map(size));
  let open = 0;
  for (const device of devices) {
    if (open < OPEN_DEVICES && size(device) >= largest / 20) open += 1;
    else found.add(device.id);
  }
  const walk = (list: readonly GroupInfo[]) => {
    for (const group of list) {
      if (group.kind === "pool") found.add(group.id);
      walk(group.groups);
    }
  };
  walk(groups);
  return found;
}
