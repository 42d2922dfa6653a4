/** How wide the columns are: as wide as what they hold, long texts sharing what is left. */
import type { Cell, Field } from "../api";
import { fieldLabel, unitLabel } from "../format";
import type { TableData } from "./model";

const CHARACTER = 7.1;
const PADDING = 22;
const SAMPLE = 300;

export function columnWidths(data: TableData, fields: readonly Field[], formats: readonly ((value: Cell) => string)[]): string {
  const texts = fields.filter((field) => field.kind === "str");
  const longest = new Map(fields.map((field, index) => [field.name, longestText(data, field, formats[index] as (value: Cell) => string)]));
  const widest = Math.max(0, ...texts.map((field) => longest.get(field.name) ?? 0));
  return fields
    .map((field) => {
      const unit = unitLabel(field.unit);
      const head = fieldLabel(field).length + (unit ? unit.length + 1 : 0) + 2;
      const body = longest.get(field.name) ?? 0;
      if (field.kind !== "str") return `${Math.ceil(Math.max(head, body) * CHARACTER + PADDING)}px`;
      const least = Math.ceil(Math.max(head, Math.min(body, 22)) * CHARACTER + PADDING);
      if (body <= 22 && body < widest) return `minmax(${least}px, ${least + 40}px)`;
      return `minmax(${Math.max(least, 150)}px, ${Math.max(1, Math.min(body, 90) / 10).toFixed(1)}fr)`;
    })
    .join(" ");
}

function longestText(data: TableData, field: Field, format: (value: Cell) => string): number {
  const values = data.columns[field.name] ?? [];
  const stride = Math.max(1, Math.floor(data.rowCount / SAMPLE));
  let longest = 0;
  for (let row = 0; row < data.rowCount; row += stride) longest = Math.max(longest, format(values[row] ?? null).length);
  return longest;
}
