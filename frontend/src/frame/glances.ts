/** What the server knows of sessions, asked for as the list of sessions shows them; it reads them one by one. */
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { address, getJson } from "../api";
import { isReady, sessionId } from "../session";

export interface Glance {
  readonly framework: string | null;
  readonly device_type: string | null;
  readonly device_count: number | null;
  readonly devices_used: number | null;
  readonly step_ms: number | null;
  readonly verdict: string;
  /** The verdict's first words, as its page begins. */
  readonly limit: string;
  /** How many hosts, processes or ranks it is of. */
  readonly hosts: string;
  /** When the recording began, as its file states it. */
  readonly recorded?: string | null;
  readonly cause?: string | null;
  readonly cause_percent?: number | null;
  /** What to do first. */
  readonly advice?: string | null;
  readonly steps_ms: readonly number[];
  /** The step that the cause's share is of, where that is not the median one. */
  readonly long_step_ms?: number | null;
  /** Why it could not be read; then it has nothing else. */
  readonly problem?: string;
}

export const glances = signal<Readonly<Record<string, Glance | null>>>({});

/** Sessions that the server is reading for their glance. */
export const awaited = signal<ReadonlySet<string>>(new Set());

interface Reading {
  readonly reading: true;
}

const AT_ONCE = 50;
/** One that is being read is asked for again after this long. */
const AGAIN_MS = 1500;
let wanted = new Set<string>();
let timer = 0;

/** Asks for the glance of a session, together with others that are asked for at the same time. */
function wantGlance(id: string): void {
  if (glances.peek()[id] || wanted.has(id)) return;
  wanted.add(id);
  askIn(30);
}

function askIn(milliseconds: number): void {
  window.clearTimeout(timer);
  timer = window.setTimeout(() => void fetchGlances(), milliseconds);
}

async function fetchGlances(): Promise<void> {
  const ids = [...wanted];
  wanted = new Set();
  for (let first = 0; first < ids.length; first += AT_ONCE) {
    const some = ids.slice(first, first + AT_ONCE);
    try {
      const found = await getJson<Record<string, Glance | Reading | null>>(
        address("api/glances", { sessions: some.join(",") }),
      );
      const known = Object.entries(found).filter((entry): entry is [string, Glance | null] => !isReading(entry[1]));
      glances.value = { ...glances.peek(), ...Object.fromEntries(known) };
      wanted = new Set([...wanted, ...some.filter((id) => isReading(found[id]))]);
    } catch {
      return; // the list is whole without them
    }
  }
  awaited.value = wanted;
  if (wanted.size) askIn(AGAIN_MS);
}

function isReading(glance: Glance | Reading | null | undefined): glance is Reading {
  return !!glance && "reading" in glance;
}

/** What is known of a session, once the element that shows it has come into view. */
export function useGlance<E extends Element>(id: string) {
  const place = useRef<E>(null);
  const isOpen = isReady.value && sessionId.value === id; // then it has been read, though perhaps not before
  useEffect(() => {
    const watch = new IntersectionObserver((seen) => seen.some((each) => each.isIntersecting) && wantGlance(id));
    if (place.current) watch.observe(place.current);
    return () => watch.disconnect();
  }, [id, isOpen]);
  return [place, glances.value[id] ?? null] as const;
}

const WIDTH = 64;
const HEIGHT = 18;

/** Step times as an area in a box of 64 x 18, from zero. */
export function sparkline(times: readonly number[]): string {
  if (times.length < 2) return "";
  const longest = Math.max(...times);
  if (!(longest > 0)) return "";
  const x = (at: number) => ((at * WIDTH) / (times.length - 1)).toFixed(1);
  const bottom = HEIGHT - 1;
  const tops = times.map((time, at) => `L${x(at)} ${(bottom - (time / longest) * (HEIGHT - 3)).toFixed(1)}`);
  return `M0 ${bottom}${tops.join("")}L${WIDTH} ${bottom}Z`;
}
