/** What the server sends of a program's graph. */
import { type Cell, getJson } from "../../api";

export interface GraphNode {
  readonly id: number;
  readonly name: string;
  readonly category: string;
  readonly shape: string;
  readonly hops: number;
  readonly occurrences: number;
  readonly self_us: number;
  readonly on_path: boolean;
  /** The computation inside, of a fusion, loop or call; empty for others. */
  readonly opens: string;
  readonly framework_op: string;
  readonly source: string;
  readonly flops: number | null;
  readonly bytes: number | null;
}

/** From, to, bytes of the result, and how many instructions between the two are not drawn. */
export type GraphEdge = readonly [from: number, to: number, bytes: number, skipped: number];

export interface GraphPart {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  readonly cut: boolean;
}

export interface Picture extends GraphPart {
  readonly program: string;
  readonly instructions: number;
  readonly self_us: number;
  readonly path_us: number;
  /** The instruction in the middle; -1 for the expensive path. */
  readonly centre: number;
  readonly inside: Readonly<Record<string, GraphPart>>;
}

export interface ProgramEntry {
  readonly program: string;
  readonly bytes: number;
  readonly self_us: number;
}

/** The time of one run of an instruction, in ms; instructions run on several devices and many times. */
export const runMs = ({ self_us, occurrences }: GraphNode): number => self_us / 1e3 / Math.max(1, occurrences);

export interface Found {
  readonly nodes: readonly GraphNode[];
  readonly cut: boolean;
}

export function hloAddress(session: string, what: string, query: Readonly<Record<string, Cell>>): string {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `api/sessions/${encodeURIComponent(session)}/hlo/${what}${text ? `?${text}` : ""}`;
}

export function search(address: string, abort: AbortSignal): Promise<Found> {
  return getJson<Found>(address, abort);
}
