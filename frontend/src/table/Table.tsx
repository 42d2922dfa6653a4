/** The one table of the page: any number of rows, sorted, filtered, copied, exported, opened. */

import { useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Cell, Field } from "../api";
import { headOf } from "../filter";
import { columnFormat, exact, isKnown, type Shown, unitLabel, unitsOf } from "../format";
import { route, setParams } from "../router";
import { chosenPart } from "../session";
import { termsOf } from "../terms";
import { LongName } from "../ui/basics";
import { SearchBox } from "../ui/controls";
import { hint } from "../ui/hint";
import { Icon } from "../ui/icons";
import { useKeys } from "../ui/keys";
import { ColumnMenu } from "./ColumnMenu";
import { copyText, save } from "./export";
import { fontsReady, measurer } from "./measure";
import {
  formatSort,
  nameColumn,
  nextSort,
  parseSort,
  type Sort,
  shownFields,
  type TableData,
  tellingFirst,
  toCsv,
  toTsv,
  viewOf,
} from "./model";
import { narrow } from "./narrow";
import { RowDetails, type RowLink } from "./RowDetails";
import { fittingIn, PADDING, roomFor, share, type Wish, wishes } from "./widths";

export interface TableProps {
  /** Names the table in the address and in file names. */
  id: string;
  title: string;
  data: TableData;
  empty?: string;
  /** A sentence that says where a program finds the rows. */
  source?: string;
  /** What a click on a row or Enter does; its details open if not given. */
  pick?: (row: number) => void;
  /** Where a row leads: the timeline, another page. */
  links?: (row: number) => readonly RowLink[];
  /** The colour of a mark before a row's first text, if rows have one. */
  mark?: (row: number) => string | null;
  /** The column that has the mark; the one that names the row if not given. */
  markOn?: string;
  /** How deep a row stands in a tree; its name is moved to the right so far. */
  indent?: (row: number) => number;
  /** Shorter heads for columns whose names are long. */
  labels?: Readonly<Record<string, string>>;
  /** How values of a column are written, where the report's own form is for programs. */
  texts?: Readonly<Record<string, (text: string) => string>>;
  /** Whether a value is good or bad, which sets its colour. */
  tone?: (row: number, field: string) => "good" | "bad" | null;
  /** Columns shown at first; all that hold anything if not given. */
  columns?: readonly string[];
  /** How high the table may grow: `page` fills the window, `short` shows a dozen rows. */
  height?: "page" | "short" | "all";
  /** Without tools, no filter, no export; for tables of a few rows. What there is no room for is offered below. */
  plain?: boolean;
  /** The main table of the page answers to `/`. */
  main?: boolean;
}

const ROW = 30;
const SPARE = 5;
const INDENT = 14;
/** The mark before a name, and what keeps things in a cell apart. */
const MARK = 17;

export function Table(props: TableProps) {
  const { id, data, title, height = "short", plain = false } = props;
  const params = route.value.params;
  const filter = params[`${id}.filter`] ?? "";
  const sort = parseSort(params[`${id}.sort`], data.fields);
  const chosen = params[`${id}.cols`];
  const usual = props.columns?.join(",");
  const sorted = sort?.column ?? null;
  const fields = useMemo(() => {
    const shown = shownFields(data, chosen ?? usual, chosen !== undefined);
    return narrow.value && chosen === undefined ? tellingFirst(shown, sorted) : shown;
  }, [data, chosen, usual, sorted, narrow.value]);
  const [fitting, setFitting] = useState(fields.length);
  const mayFit = chosen === undefined;
  const left = mayFit ? Math.max(0, fields.length - fitting) : 0;
  const written = () => (chosen === undefined ? shownFields(data, undefined) : fields);
  const sortKey = formatSort(sort) ?? "";
  const view = useMemo(() => viewOf(data, filter, parseSort(sortKey, data.fields)), [data, filter, sortKey]);
  const [open, setOpen] = useState<number | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const key = `${id}.`;
  const noun = data.rowCount === 1 ? "row" : "rows";
  const isBare = plain && !filter;
  const columnMenu = (
    <ColumnMenu
      data={data}
      shown={fields.slice(0, fields.length - left)}
      left={left}
      onChange={(names) => setParams({ [`${key}cols`]: names?.join(",") ?? null })}
    />
  );
  // The grid tells how many columns fit; that alone changes nothing in it.
  const grid = useMemo(
    () => (
      <Grid
        {...props}
        fields={fields}
        onFit={mayFit ? setFitting : null}
        rows={view.rows}
        sort={parseSort(sortKey, data.fields)}
        onSort={(next) => setParams({ [`${id}.sort`]: formatSort(next) })}
        onOpen={props.pick ?? setOpen}
      />
    ),
    [props, fields, mayFit, view.rows, sortKey],
  );
  useKeys(
    props.main ? [{ keys: "/", does: "Filter the table", group: "Tables", run: () => input.current?.focus() }] : [],
    [props.main],
  );

  return (
    <div class={`table-box table-${height}`} data-table={id}>
      {!isBare && data.rowCount > 0 && (
        <div class="table-tools row gap-l below-m">
          <SearchBox
            label={`Filter ${title}`}
            placeholder={placeholder(fields)}
            value={filter}
            box={input}
            isWrong={view.error !== null}
            onChange={(text) => setParams({ [`${key}filter`]: text })}
            onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
            explained={hint(
              "Filter",
              "Words that a row must contain (-word: must not), and conditions such as: self > 5, side=device, " +
                "type != copy, name ~ conv. The start of a column's name is enough.",
            )}
          />
          <span class="table-count muted minor shrinks" role="status">
            {view.error ??
              (view.rows.length === data.rowCount
                ? `${data.rowCount.toLocaleString("en-US")} ${noun}`
                : `${view.rows.length.toLocaleString("en-US")} of ${data.rowCount.toLocaleString("en-US")} ${noun}`)}
          </span>
          <div class="table-actions flex to-end rigid">
            {columnMenu}
            <button
              type="button"
              class="button quiet"
              onClick={() => void copyText(toTsv(data, view.rows, written()))}
              {...hint("Copy", `Copies the visible rows and columns for a spreadsheet. ${props.source ?? ""}`)}
            >
              <Icon name="copy" size={16} /> Copy
            </button>
            <button
              type="button"
              class="button quiet"
              onClick={() => save(`${fileName(id)}.csv`, toCsv(data, view.rows, written()))}
              {...hint("CSV", `Saves the visible rows with exact values. ${props.source ?? ""}`)}
            >
              <Icon name="csv" size={16} /> CSV
            </button>
          </div>
        </div>
      )}
      {data.rowCount === 0 ? <p class="table-empty">{emptyText(props.empty)}</p> : grid}
      {isBare && (left > 0 || !mayFit) && columnMenu}
      {open !== null && (
        <RowDetails
          title={title}
          data={data}
          row={open}
          links={props.links?.(open) ?? []}
          onClose={() => setOpen(null)}
        />
      )}
    </div>
  );
}

function fileName(id: string): string {
  return `stepscope-${id.replace(/[^\w-]+/g, "-")}`;
}

function placeholder(fields: readonly Field[]): string {
  const number = fields.find((field) => field.kind === "float");
  return number ? `Filter: text, or ${headOf(number)} > 5` : "Filter";
}

interface GridProps extends TableProps {
  fields: readonly Field[];
  /** Told how many of the fields there is room for, which then are those that are shown; null to show all. */
  onFit: ((count: number) => void) | null;
  rows: readonly number[];
  sort: Sort | null;
  onSort: (sort: Sort | null) => void;
  onOpen: (row: number) => void;
}

function Grid(props: GridProps) {
  const { data, rows, sort, height = "short" } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [window_, setWindow] = useState({ first: 0, count: 40 });
  const [at, setAt] = useState(0);
  const label = useId();
  const all = props.fields;
  const units = useMemo(() => unitsOf(data.fields, data.columns), [data]);
  const formats = useMemo(
    () =>
      all.map((field) => {
        const text = props.texts?.[field.name] ?? termsOf(field);
        return formatOf(field, data.columns[field.name] ?? [], units.get(field.name), text);
      }),
    [data, all],
  );
  const marked = props.markOn ? all.findIndex((field) => field.name === props.markOn) : nameColumn(all);
  const [width, setWidth] = useState<number | null>(null);
  const available = width ?? 0;
  const measure = useMemo(measurer, [available, fontsReady.value]);
  const wishesOfAll = useMemo(
    () =>
      width === null
        ? []
        : widened(
            wishes(data, all, formats, measure, props.labels),
            marked,
            deepest(data, props.indent) * INDENT + (props.mark ? MARK : 0),
          ),
    [data, all, formats, measure, width === null],
  );
  const count = props.onFit && available > 0 ? fittingIn(wishesOfAll, available) : all.length;
  const fields = useMemo(() => all.slice(0, count), [all, count]);
  const wanted = useMemo(() => wishesOfAll.slice(0, count), [wishesOfAll, count]);
  useLayoutEffect(() => props.onFit?.(count), [count, props.onFit]);
  const [left, setLeft] = useState(0);
  const widths = useMemo(() => share(wanted, available), [wanted, available]);
  const template = useMemo(() => widths.map((each) => `${each}px`).join(" "), [widths]);
  const goesOn = width !== null && left + width < widths.reduce((sum, each) => sum + each, 0) - 2;
  const bars = useMemo(() => fields.map((field) => field.role === "share"), [fields]);

  const look = () => {
    const box = scroller.current;
    if (!box) return;
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - SPARE);
    const count = Math.ceil(box.clientHeight / ROW) + 2 * SPARE;
    setWindow((old) => (old.first === first && old.count === count ? old : { first, count }));
    setWidth(box.clientWidth);
    setLeft(box.scrollLeft);
  };
  // The first look is that of the observer, when the page has its layout anyway.
  useLayoutEffect(() => {
    if (width !== null) look();
  }, [rows]);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(look);
    if (scroller.current) watch.observe(scroller.current);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (scroller.current && width !== null) scroller.current.scrollTop = 0;
    setAt(0);
  }, [rows]);

  const depthOf = (row: number) => props.indent?.(row) ?? 0;
  const before = (row: number) => depthOf(row) * INDENT + (props.mark?.(row) ? MARK : 0);
  const move = (to: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, to));
    setAt(next);
    const box = scroller.current;
    if (!box) return;
    const top = next * ROW;
    const visible = box.clientHeight - ROW;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + ROW > box.scrollTop + visible) box.scrollTop = top + ROW - visible;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const box = scroller.current;
    if (!box || event.target !== box) return;
    const page = Math.max(1, Math.floor((box.clientHeight - ROW) / ROW) - 1);
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -rows.length,
      End: rows.length,
    };
    const step = steps[event.key];
    if (step !== undefined) move(at + step);
    else if (event.key === "Enter" && rows[at] !== undefined) props.onOpen(rows[at] as number);
    else return;
    event.preventDefault();
  };

  const last = Math.min(rows.length, window_.first + window_.count);
  // Without a width the first picture would hold all columns, to be thrown away at once.
  const visible = width === null ? [] : rows.slice(window_.first, last);
  const isDrawn = width !== null && at >= window_.first && at < last;
  return (
    <div class={`grid-frame ${goesOn ? "goes-on" : ""}`}>
      <div
        class="grid"
        ref={scroller}
        role="grid"
        tabIndex={0}
        aria-label={props.title}
        aria-rowcount={rows.length + 1}
        aria-colcount={fields.length}
        {...(isDrawn ? { "aria-activedescendant": `${label}-${at}` } : {})}
        onScroll={look}
        onKeyDown={onKeyDown}
        style={
          { "--columns": template, "--most": String(height === "all" ? rows.length + 1 : 13) } as Record<string, string>
        }
      >
        <div class="grid-head" role="row" aria-rowindex={1}>
          {fields.map((field) => (
            <HeadCell
              key={field.name}
              field={field}
              label={props.labels?.[field.name] ?? field.label}
              unit={unitLabel(units.get(field.name)?.unit ?? "")}
              sort={sort}
              onSort={props.onSort}
            />
          ))}
        </div>
        <div class="grid-body" style={{ height: `${rows.length * ROW}px` }}>
          {visible.map((row, offset) => {
            const index = window_.first + offset;
            return (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the grid around the rows listens to the keys
              <div
                key={row}
                id={`${label}-${index}`}
                class={`grid-row ${index === at ? "at" : ""}`}
                role="row"
                aria-rowindex={index + 2}
                style={{ transform: `translateY(${index * ROW}px)` }}
                onClick={() => {
                  setAt(index);
                  props.onOpen(row);
                }}
              >
                {fields.map((field, column) => (
                  <BodyCell
                    key={field.name}
                    field={field}
                    room={(text) =>
                      roomFor(text, (widths[column] ?? 0) - PADDING - (column === marked ? before(row) : 0), measure)
                    }
                    value={data.columns[field.name]?.[row] ?? null}
                    text={(formats[column] as (v: Cell) => string)(data.columns[field.name]?.[row] ?? null)}
                    bar={bars[column] as boolean}
                    mark={column === marked ? (props.mark?.(row) ?? null) : null}
                    depth={column === marked ? depthOf(row) : 0}
                    tone={props.tone?.(row, field.name) ?? null}
                    meaning={column === 0 ? meaningOf(data, row) : ""}
                  />
                ))}
              </div>
            );
          })}
        </div>
        {rows.length === 0 && <p class="table-empty">No row matches the filter</p>}
      </div>
    </div>
  );
}

/** What a row's name means, where the report says so. */
function meaningOf(data: TableData, row: number): string {
  const field = data.fields.find((each) => each.role === "meaning");
  return String((field && data.columns[field.name]?.[row]) ?? "");
}

/** Explains an empty table, which may be due to the chosen host or steps and not to the recording. */
function emptyText(reason = "nothing to show"): string {
  const part = chosenPart();
  const said = `${reason.charAt(0).toUpperCase()}${reason.slice(1)}`;
  return part ? `${said}${/[.!?]$/.test(said) ? "" : "."} ${part}` : said;
}

/** What is too small to show has a sign of its own. */
function withPlus(text: string): string {
  return text.startsWith("<") ? text : `+${text}`;
}

function formatOf(
  field: Field,
  values: readonly Cell[],
  unit: Shown | undefined,
  text: ((text: string) => string) | null,
): (value: Cell) => string {
  const plain = columnFormat(field, values, unit);
  const usual =
    field.role === "change"
      ? (value: Cell) => (typeof value === "number" && value > 0 ? withPlus(plain(value)) : plain(value))
      : plain;
  return text ? (value) => (typeof value === "string" ? text(value) : usual(value)) : usual;
}

function deepest(data: TableData, indent?: (row: number) => number): number {
  let most = 0;
  if (indent) for (let row = 0; row < data.rowCount; row++) most = Math.max(most, indent(row));
  return most;
}

function widened(list: readonly Wish[], column: number, by: number): Wish[] {
  return list.map((wish, index) =>
    index === column ? { tight: wish.tight + by, least: wish.least + by, most: wish.most + by } : wish,
  );
}

function HeadCell({
  field,
  label,
  unit: shown,
  sort,
  onSort,
}: {
  field: Field;
  label: string;
  unit: string;
  sort: Sort | null;
  onSort: (sort: Sort | null) => void;
}) {
  const sorted = sort?.column === field.name ? (sort.descending ? "descending" : "ascending") : "none";
  const unit = shown === label ? "" : shown;
  return (
    <div class={`cell head ${alignment(field)}`} role="columnheader" aria-sort={sorted}>
      <button
        type="button"
        onClick={() => onSort(nextSort(sort, field))}
        {...hint(`${field.name}${unit ? ` (${unit})` : ""}`, field.doc)}
      >
        <span class="head-name">{label}</span>
        {unit && <span class="head-unit">{unit}</span>}
        <span class={`head-sort ${sorted}`} aria-hidden="true" />
      </button>
    </div>
  );
}

interface BodyCellProps {
  field: Field;
  value: Cell;
  text: string;
  bar: boolean;
  /** How many signs of a text fit into the cell. */
  room: (text: string) => number;
  mark: string | null;
  depth: number;
  tone: "good" | "bad" | null;
  /** What the row's name means. */
  meaning: string;
}

function BodyCell({ field, value, text, bar, room, mark, depth, tone, meaning }: BodyCellProps) {
  const number = typeof value === "number";
  const share = bar && number ? Math.max(0, Math.min(100, value)) : null;
  return (
    <div
      class={`cell ${alignment(field)} ${isKnown(value) ? "" : "unknown"} ${share === null ? "" : "bar"} ${tone ?? ""}`}
      role="gridcell"
      {...(share === null ? {} : { style: { "--share": `${share}%` } as Record<string, string> })}
      {...(number ? hint(field.label, field.doc, exact(value, field.unit)) : meaning ? hint(text, meaning) : {})}
    >
      {depth > 0 && <span class="indent" style={{ width: `${depth * INDENT}px` }} />}
      {mark && <span class="swatch" style={{ background: mark }} />}
      {field.kind === "str" && typeof value === "string" ? (
        <LongName text={text} whole={value} room={room(text)} />
      ) : (
        text
      )}
    </div>
  );
}

function alignment(field: Field): string {
  return field.kind === "float" || field.kind === "int" || field.kind === "ints" ? "right" : "left";
}
