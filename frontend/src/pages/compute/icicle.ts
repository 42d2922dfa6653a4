/** The modules of a model as an icicle: each as wide as its time, its children below it. */
export interface ModuleRow {
  readonly id: number;
  readonly parent: number | null;
  readonly module: string;
  readonly calls: number;
  readonly host_us: number;
  readonly host_self_us: number;
  readonly device_us: number;
  readonly device_self_us: number;
}

export type Measure = "device" | "host";

export interface Block {
  readonly row: ModuleRow;
  /** Share of the whole, 0 to 1, from the left. */
  readonly left: number;
  readonly width: number;
  readonly level: number;
  readonly total_us: number;
  readonly self_us: number;
}

/** Narrower ones cannot be seen or hit. */
const THINNEST = 0.0015;

export function icicle(rows: readonly ModuleRow[], measure: Measure, focus: number | null = null): Block[] {
  const total = (row: ModuleRow) => (measure === "device" ? row.device_us : row.host_us);
  const self = (row: ModuleRow) => (measure === "device" ? row.device_self_us : row.host_self_us);
  const children = new Map<number | null, ModuleRow[]>();
  for (const row of rows) children.set(row.parent, [...(children.get(row.parent) ?? []), row]);
  const top = focus === null ? (children.get(null) ?? []) : rows.filter((row) => row.id === focus);
  const whole = top.reduce((sum, row) => sum + total(row), 0);
  const blocks: Block[] = [];
  const place = (row: ModuleRow, left: number, level: number) => {
    const width = total(row) / whole;
    if (width < THINNEST) return;
    blocks.push({ row, left, width, level, total_us: total(row), self_us: self(row) });
    let at = left;
    for (const child of children.get(row.id) ?? []) {
      place(child, at, level + 1);
      at += total(child) / whole;
    }
  };
  let at = 0;
  if (!(whole > 0)) return [];
  for (const row of top) {
    place(row, at, 0);
    at += total(row) / whole;
  }
  return blocks;
}

/** The module and those that it is in, outermost first. */
export function pathTo(rows: readonly ModuleRow[], id: number | null): ModuleRow[] {
  const byId = new Map(rows.map((row) => [row.id, row]));
  const path: ModuleRow[] = [];
  for (
    let row = id === null ? undefined : byId.get(id);
    row && !path.includes(row);
    row = row.parent === null ? undefined : byId.get(row.parent)
  )
    path.unshift(row);
  return path;
}
