/** Memory in use over the order of a program: what lasts below, temporaries above. */
import { bytes } from "../format";
import { fromZero, type Plot, spanOf, wholes } from "./plot";

export const PROGRAM_MEMORY_COLOUR = { lasting: "#677303", temporary: "#2f65ed" } as const;

export interface MemoryPoint {
  readonly position: number;
  readonly bytes: number;
}

/** The first position of the most bytes. */
export function peakOf(points: readonly MemoryPoint[]): MemoryPoint | null {
  return points.reduce<MemoryPoint | null>((most, point) => (most && most.bytes >= point.bytes ? most : point), null);
}

/** `lasting`: memory that is in use for the whole run, in bytes. */
export function programMemory(points: readonly MemoryPoint[], lasting: number): Plot {
  const peak = peakOf(points);
  const x = points.map((point) => point.position);
  const below = points.map((point) => Math.min(lasting, point.bytes));
  const whole = points.map((point) => point.bytes);
  const area = { x, isStepped: true, fill: 0.45, width: 1 };
  return {
    x: wholes(spanOf(x), (place) => place.toLocaleString("en-US"), "place in the program's order"),
    y: fromZero(peak?.bytes ?? 0, bytes, "", 2),
    curves: [
      { ...area, name: "Whole run", colour: PROGRAM_MEMORY_COLOUR.lasting, y: below },
      { ...area, name: "Temporaries", colour: PROGRAM_MEMORY_COLOUR.temporary, y: whole, base: below },
    ],
    guides: peak ? [{ x: peak.position, name: "peak" }] : [],
    places: x,
    popup: (index) => ({
      title: `place ${(x[index] as number).toLocaleString("en-US")}`,
      lines: [
        { name: "In use", value: bytes(whole[index] as number) },
        { name: "Whole run", value: bytes(below[index] as number), colour: PROGRAM_MEMORY_COLOUR.lasting },
        {
          name: "Temporaries",
          value: bytes((whole[index] as number) - (below[index] as number)),
          colour: PROGRAM_MEMORY_COLOUR.temporary,
        },
      ],
    }),
  };
}
