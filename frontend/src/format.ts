/**
 * Formats numbers.  The page shows the API's numbers, rounded for reading; hovering shows the exact value.
 */
import type { Cell, Field } from "./api";

export const UNKNOWN = "–";

const plain = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const byDecimals = Array.from(
  { length: 7 },
  (_, digits) => new Intl.NumberFormat("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }),
);

export function isKnown(value: Cell | undefined): value is Exclude<Cell, null> {
  return value !== null && value !== undefined && !(typeof value === "number" && !Number.isFinite(value));
}

/** True for a list of numbers, such as the dimensions of a block. */
export function isList(value: Cell | undefined): value is readonly number[] {
  return Array.isArray(value);
}

export function decimal(value: number, digits: number): string {
  return (byDecimals[Math.max(0, Math.min(6, digits))] as Intl.NumberFormat).format(value);
}

/** How many decimals a column needs so that its largest number shows four digits, three if it is below one. */
export function decimalsFor(largest: number): number {
  const size = Math.abs(largest);
  if (!(size > 0)) return 0;
  const power = Math.floor(Math.log10(size));
  return Math.max(0, Math.min(6, (power < 0 ? 2 : 3) - power));
}

/** A number with `digits` decimals; one too small for them is shown as `<0.01`, not as 0. */
export function fixed(value: number, digits: number): string {
  if (value === 0) return "0";
  const smallest = 10 ** -digits;
  if (Math.abs(value) < smallest / 2)
    return value > 0 ? `<${decimal(smallest, digits)}` : `>−${decimal(smallest, digits)}`;
  return decimal(value, digits).replace("-", "−");
}

/** A single number by its own size: 177.6, 21.31, 0.0123, 12,345. */
export function short(value: number): string {
  return fixed(value, decimalsFor(value));
}

export function percent(value: number, digits = 1): string {
  return `${fixed(value, digits)} %`;
}

export function bytes(value: number): string {
  const size = Math.abs(value);
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let power = 0;
  while (power < units.length - 1 && size >= 1024 ** (power + 1)) power += 1;
  if (power === 0) return `${plain.format(value).replace("-", "−")} B`;
  const scaled = value / 1024 ** power;
  return `${decimal(scaled, Math.max(0, decimalsFor(scaled) - 1)).replace("-", "−")} ${units[power]}`;
}

/** A value of a counter: 24.34, 100, 1.61 GiB. */
export function counterText(value: number, unit: string): string {
  return unit === "bytes" ? bytes(value) : value.toLocaleString("en-US", { maximumSignificantDigits: 4 });
}

/** A time in ms in a readable unit: 21.3 ms, 1.07 s, 435 µs. */
export function duration(ms: number): string {
  const size = Math.abs(ms);
  if (size === 0) return "0 ms";
  if (size < 0.9995e-3) return `${threeDigits(ms * 1e6)} ns`;
  if (size < 0.9995) return `${threeDigits(ms * 1e3)} µs`;
  if (size < 999.5) return `${threeDigits(ms)} ms`;
  if (size < 59.95e3) return `${threeDigits(ms / 1e3)} s`;
  const seconds = Math.round(size / 1e3);
  const minutes = Math.floor(seconds / 60);
  return `${ms < 0 ? "−" : ""}${minutes} min ${seconds % 60} s`;
}

export function threeDigits(inexact: number): string {
  const value = Number(inexact.toPrecision(12)); // a sum of parts may be 7.784999999999999 where the whole is 7.785
  const rounded = Number(value.toPrecision(3)); // 9.996 has one digit more before the point than it seems
  return decimal(value, Math.max(0, decimalsFor(rounded) - (Math.abs(rounded) < 1 ? 0 : 1))).replace("-", "−");
}

/** A unit as shown in a table's head; empty if the values need none. */
export function unitLabel(unit: string): string {
  const labels: Record<string, string> = {
    percent: "%",
    us: "µs",
    bytes: "",
    "bytes/h": "",
    count: "",
    text: "",
    number: "",
    "by unit": "",
    bool: "",
    "yes or no": "",
  };
  return labels[unit] ?? unit;
}

/** One value of a field, by itself. */
export function cellText(value: Cell | undefined, unit: string): string {
  if (!isKnown(value)) return UNKNOWN;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  if (isList(value)) return value.join(" × ");
  if (unit === "bytes") return bytes(value);
  if (unit === "bytes/h") return `${bytes(value)}/h`;
  if (unit === "percent") return percent(value);
  return Number.isInteger(value) ? plain.format(value).replace("-", "−") : short(value);
}

export const TIMES = ["ns", "us", "ms", "s"];

/** A single time in the unit in which it has at most four digits before the point, and not only zeros after it. */
export function inUnit(value: Cell | undefined, unit: string): [Cell | undefined, string] {
  let at = TIMES.indexOf(unit);
  if (at < 0 || typeof value !== "number" || !value) return [value, unit];
  let size = value;
  for (; Math.abs(size) >= 1e4 && at < TIMES.length - 1; at += 1) size /= 1e3;
  for (; Math.abs(size) < 0.01 && at > 0; at -= 1) size *= 1e3;
  return [size, TIMES[at] as string];
}

/** The exact value, as the API gave it. */
export function exact(value: Cell | undefined, unit: string): string {
  if (!isKnown(value)) return "unknown";
  if (typeof value !== "number") return cellText(value, unit);
  const label = unitLabel(unit) || (unit.startsWith("bytes") ? unit : "");
  return label ? `${value} ${label}` : String(value);
}

/** Units that a column may be shown in, the smallest first. */
const LADDERS = [TIMES, ["GFLOP/s", "TFLOP/s"]];
const ladderOf = ({ unit, kind, role }: Field) =>
  kind === "float" && role !== "instant" ? LADDERS.find((each) => each.includes(unit)) : undefined;

/** At most so many digits before the point, and so little is a number of two digits with the most decimals. */
const [WIDEST, LEAST] = [1e4, 0.01];
/** Of a table's numbers: a unit in which more of them are smaller than that would hide them. */
const FEW = 0.25;

/** The unit in which a column is shown, and how many of its own units that is. */
export interface Shown {
  readonly unit: string;
  readonly size: number;
}

export type ColumnValues = Readonly<Record<string, readonly Cell[]>>;

const ownUnit = ({ unit }: Field): Shown => ({ unit, size: 1 });
const unitsOfTables = new WeakMap<ColumnValues, ReadonlyMap<string, Shown>>();

/**
 * The unit of each column: times have that of the longest of the table, as do rates, so that columns can be compared.
 * Where that leaves too many numbers too small to read, a column that does not reach one of the unit has its own.
 */
export function unitsOf(fields: readonly Field[], columns: ColumnValues): ReadonlyMap<string, Shown> {
  const known = unitsOfTables.get(columns);
  if (known) return known;
  const found = new Map(fields.map((field) => [field.name, columnUnit(field, columns[field.name] ?? [])]));
  for (const ladder of LADDERS) {
    const alike = fields.filter((field) => ladderOf(field) === ladder);
    const at = Math.max(...alike.map(({ name }) => ladder.indexOf((found.get(name) as Shown).unit)));
    const inOne = alike.map((field) => ({ field, size: 1e3 ** (at - ladder.indexOf(field.unit)) }));
    const sizes = inOne.flatMap(({ field, size }) => sizesOf(columns[field.name] ?? [], size));
    for (const { field, size } of inOne)
      if (!areHidden(sizes) || sizesOf(columns[field.name] ?? [], size).some((each) => each >= 1))
        found.set(field.name, { unit: ladder[at] as string, size });
  }
  unitsOfTables.set(columns, found);
  return found;
}

const areHidden = (sizes: readonly number[]) => sizes.filter((each) => each < LEAST).length > FEW * sizes.length;

/** The unit of a column by its largest number. */
export function columnUnit(field: Field, values: readonly Cell[]): Shown {
  const ladder = ladderOf(field);
  if (!ladder) return ownUnit(field);
  let [at, size] = [ladder.indexOf(field.unit), 1];
  const sizes = sizesOf(values, 1);
  let most = sizes.reduce((largest, each) => Math.max(largest, each), 0);
  const isWide = () => most >= WIDEST || (most >= 1e3 && !areHidden(sizes.map((each) => each / size / 1e3)));
  for (; at < ladder.length - 1 && isWide(); most /= 1e3) [at, size] = [at + 1, size * 1e3];
  for (; most > 0 && most < 0.1 && at > 0; most *= 1e3) [at, size] = [at - 1, size / 1e3];
  return { unit: ladder[at] as string, size };
}

/** How large the numbers of a column are that are not 0. */
function sizesOf(values: readonly Cell[], size: number): number[] {
  return values.flatMap((value) => (typeof value === "number" && value ? [Math.abs(value) / size] : []));
}

/** So many decimals that not half of the numbers are `<0.1`; three at most, which are microseconds of milliseconds. */
function decimalsOf(values: readonly Cell[], size: number): number {
  const sizes = sizesOf(values, size).sort((a, b) => a - b);
  const middle = sizes[Math.floor((sizes.length - 1) / 2)] ?? 1;
  return Math.max(decimalsFor(sizes.at(-1) ?? 0), Math.min(3, Math.ceil(-Math.log10(middle))));
}

/** Units of columns whose values have different units, and so different sizes. */
const OF_MANY_UNITS = new Set(["", "by unit"]);

/** The format of a column: the same decimals for all of its numbers, so that the points are aligned. */
export function columnFormat(
  field: Field,
  values: readonly Cell[],
  { size }: Shown = columnUnit(field, values),
): (value: Cell | undefined) => string {
  if (field.kind !== "float" || field.unit.startsWith("bytes") || OF_MANY_UNITS.has(field.unit))
    return (value) => cellText(value, field.unit);
  const fractional = size !== 1 || values.some((value) => typeof value === "number" && !Number.isInteger(value));
  // Neighbours on the time axis differ by little, however far from the start they are.
  const digits =
    field.unit === "percent"
      ? Math.max(1, Math.min(2, decimalsOf(values, 1)))
      : field.role === "instant"
        ? 3
        : fractional
          ? decimalsOf(values, size)
          : 0;
  return (value) =>
    isKnown(value) && typeof value === "number" ? fixed(value / size, digits) : cellText(value, field.unit);
}

/** When something was, for a list: `12 Nov, 14:03`; with the year if it is another one. */
export function when(unixSeconds: number, now = new Date()): string {
  const date = new Date(unixSeconds * 1000);
  const sameYear = date.getFullYear() === now.getFullYear();
  return date.toLocaleString("en-GB", {
    day: "numeric",
    month: "short",
    ...(sameYear ? {} : { year: "numeric" }),
    hour: "2-digit",
    minute: "2-digit",
  });
}

/** A text with visible characters in place of invisible ones and of those that change the writing direction. */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu, "\ufffd");
}

/** `device_compute` as `device compute`, `input_bound` as `input-bound`; other names stay as they are. */
export function words(name: string): string {
  return /^[a-z]+(_[a-z]+)+$/.test(name) ? name.replace(/_(?=bound$)/, "-").replaceAll("_", " ") : name;
}

const FLOP_UNITS = ["", "k", "M", "G", "T", "P"];

/** 171798691840 as 172 GFLOP. */
export function operations(flops: number): string {
  const step = Math.min(FLOP_UNITS.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(flops, 1)) / 3)));
  return `${Number((flops / 1000 ** step).toPrecision(3))} ${FLOP_UNITS[step]}FLOP`;
}

/** `1 doubt`, `1,200 doubts`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}

/** `8 hosts`, `8 ranks` where that is how they are called, or `8 processes of one host`. */
export function placesText(names: readonly string[]): string {
  if (names.length > 1 && names.every((name) => /^rank[ _-]?\d+$/.test(name))) return `${names.length} ranks`;
  const machines = new Set(names.map((name) => name.replace(/_\d+$/, "").replace(/_rank\d+$/, ""))).size;
  if (machines === names.length) return counted(machines, "host");
  return `${names.length} processes of ${machines === 1 ? "one host" : counted(machines, "host")}`;
}
