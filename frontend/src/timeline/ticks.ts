/** Ticks of the ruler, and times as text. */
import { decimal } from "../format";
import type { Span } from "./viewport";

const PS = { ns: 1e3, µs: 1e6, ms: 1e9, s: 1e12 } as const;
type Unit = keyof typeof PS;

export interface Tick {
  readonly time: number;
  readonly label: string;
}

export interface Ticks {
  readonly step: number;
  readonly ticks: readonly Tick[];
  /** How many parts each step is divided into by the small ticks. */
  readonly minor: number;
}

const LEAST_PIXELS = 96;

/** Ticks at round times, at least so far apart that their labels have room. */
export function ticksOf(span: Span, width: number, leastPixels = LEAST_PIXELS): Ticks {
  const wanted = ((span.end - span.begin) / Math.max(1, width)) * leastPixels;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const factor = [1, 2, 5, 10].find((each) => each * power >= wanted * (1 - 1e-9)) ?? 10;
  const step = factor * power;
  const unit = unitOf(Math.max(Math.abs(span.begin), Math.abs(span.end)), step);
  const digits = Math.max(0, Math.ceil(-Math.log10(step / PS[unit]) - 1e-9));
  const ticks: Tick[] = [];
  for (let n = Math.ceil(span.begin / step); n * step <= span.end; n += 1)
    ticks.push({ time: n * step, label: label(n * step, unit, digits) });
  return { step, ticks, minor: factor === 2 ? 4 : 5 };
}

/** The unit in which the numbers on the ruler are neither long nor have many decimals. */
function unitOf(largest: number, step: number): Unit {
  if (step >= PS.s || (largest >= PS.s && step >= PS.s / 10)) return "s";
  if (step >= PS.ms / 1000 && largest < 1e5 * PS.ms) return largest < PS.ms ? "µs" : "ms";
  if (step >= PS.ms) return "ms";
  if (step >= PS.µs) return largest < 1e6 * PS.µs ? "µs" : "ms";
  return largest < 1e6 * PS.ns ? "ns" : "µs";
}

function label(time: number, unit: Unit, digits: number): string {
  return `${grouped(time / PS[unit], Math.min(6, digits))} ${unit}`;
}

function grouped(value: number, digits: number): string {
  return decimal(value + 0, digits).replace("-", "−"); // without the sign of -0
}

/** A duration with four digits: 12.34 µs, 1.070 ms. */
export function duration(ps: number): string {
  const size = Math.abs(ps);
  if (size === 0) return "0 ns";
  const unit: Unit = size < PS.µs ? "ns" : size < PS.ms ? "µs" : size < PS.s ? "ms" : "s";
  const value = ps / PS[unit];
  const whole = Math.max(1, Math.floor(Math.log10(Math.abs(value)) + 1e-9) + 1);
  return `${grouped(value, Math.max(0, Math.min(3, 4 - whole)))} ${unit}`;
}

/** A moment, exact to the nanosecond, in the unit that suits a trace of seconds: 2,101.479014 ms. */
export function moment(ps: number): string {
  return `${grouped(ps / PS.ms, 6).replace(/(\.\d{3}\d*?)0+$/, "$1")} ms`;
}
