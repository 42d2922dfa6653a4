/** Bars drawn with CSS: stacked ones on one scale, and ranked ones. */
import type { ComponentChildren } from "preact";
import type { Field } from "../../api";
import type { Part } from "../../charts/steps";
import { inkOn } from "../../design/colours";
import { duration, percent } from "../../format";
import { Card, LongName } from "../../ui/basics";
import { hint } from "../../ui/hint";
import { Icon } from "../../ui/icons";

export interface BarPart extends Part {
  /** What the part means. */
  readonly doc: string;
}

export interface StackedRow {
  readonly key: string;
  readonly label: string;
  readonly note?: string;
  readonly parts: Readonly<Record<string, number>>;
  readonly href?: string | null;
  /** Where the link leads, in words. */
  readonly leads?: string;
  /** Of a bar beside the main one. */
  readonly isThin?: boolean;
  /** Keys of parts that stand first in this bar. */
  readonly first?: readonly string[];
  /** Right below the bar, such as the same in the order of time. */
  readonly below?: ComponentChildren;
}

/** Of the legend: smaller parts are one entry. */
const LITTLE = 0.01;
/** A part is written into its bar if its share of the longest bar leaves room for it. */
const WRITTEN_FROM = 0.07;

export function StackedBars({
  label,
  rows,
  parts,
  write = duration,
  unit = "ms",
  legendOf,
  leadsTo,
}: {
  label: string;
  rows: readonly StackedRow[];
  parts: readonly BarPart[];
  /** An amount in words, and its unit. */
  write?: (amount: number) => string;
  unit?: string;
  /** The key of the row whose times the legend shows; without it the sums of all rows stand behind the names. */
  legendOf?: string;
  /** Where an entry of the legend leads. */
  leadsTo?: (part: string) => string;
}) {
  const counted = legendOf === undefined ? rows : rows.filter((row) => row.key === legendOf);
  const total = (row: StackedRow) => parts.reduce((sum, part) => sum + (row.parts[part.key] ?? 0), 0);
  const longest = Math.max(...rows.map(total));
  const shown = parts.filter((part) => rows.some((row) => (row.parts[part.key] ?? 0) > 0));
  const isLittle = ({ key }: BarPart) => rows.every((row) => (row.parts[key] ?? 0) < LITTLE * longest);
  const little = shown.filter(isLittle);
  const named = little.length > 1 ? shown.filter((part) => !isLittle(part)) : shown;
  if (!(longest > 0)) return null;
  return (
    <div
      class="stacked"
      role="group"
      aria-label={label}
      data-marks={rows.reduce((sum, row) => sum + shown.filter((part) => (row.parts[part.key] ?? 0) > 0).length, 0)}
    >
      <ul>
        {rows.map((row) => (
          <li key={row.key} {...(row.isThin ? { class: "thin" } : {})}>
            <span class="stacked-name list shrinks">
              <LongName text={row.label} />
              {row.note && <span class="muted">{row.note}</span>}
            </span>
            <span class="stacked-track">
              {inOrder(shown, row.first).map((part) => {
                const amount = row.parts[part.key] ?? 0;
                const share = percent((100 * amount) / total(row));
                return (
                  amount > 0 && (
                    <span
                      key={part.key}
                      data-part={part.key}
                      data-value={amount}
                      class="stacked-part row minor strong oneline"
                      style={{
                        width: `${(100 * amount) / longest}%`,
                        background: part.colour,
                        color: inkOn(part.colour),
                      }}
                      {...hint(`${part.label} · ${row.label}`, part.doc, `${amount} ${unit}, ${share}`)}
                    >
                      {amount >= WRITTEN_FROM * longest && <span>{write(amount)}</span>}
                    </span>
                  )
                );
              })}
            </span>
            <span
              class="stacked-total strong to-right oneline"
              {...hint(row.label, "the whole bar", `${total(row)} ${unit}`)}
            >
              {write(total(row))}
            </span>
            {row.href && (
              <a
                class="icon-button small"
                href={row.href}
                aria-label={`${row.leads ?? "Show in the timeline"}: ${row.label}`}
                {...hint(row.leads ?? "Show in the timeline", "")}
              >
                <Icon name="arrow" size={14} />
              </a>
            )}
            {row.below}
          </li>
        ))}
      </ul>
      <ul class="legend inline">
        {rows.length > 1 && counted.length === 1 && <li class="muted">{counted[0]?.label}</li>}
        {named.map((part) => {
          const sum = counted.reduce((all, row) => all + (row.parts[part.key] ?? 0), 0);
          return (
            <li key={part.key} tabIndex={0} {...hint(part.label, part.doc, `${sum} ${unit}`)}>
              <span class="swatch" style={{ background: part.colour }} />
              {leadsTo ? <a href={leadsTo(part.key)}>{part.label}</a> : part.label}
              {counted.length === 1 && sum > 0 && <span class="muted">{write(sum)}</span>}
            </li>
          );
        })}
        {named.length < shown.length && (
          <li class="muted" tabIndex={0} {...hint("Below 1 %", little.map(({ label: name }) => name).join(", "))}>
            {`${little.length} more below 1 %`}
          </li>
        )}
      </ul>
    </div>
  );
}

function inOrder(parts: readonly BarPart[], first: readonly string[] = []): readonly BarPart[] {
  return [...parts.filter((part) => first.includes(part.key)), ...parts.filter((part) => !first.includes(part.key))];
}

export interface RankedRow {
  readonly key: string;
  readonly label: string;
  /** The label before it was shortened. */
  readonly whole?: string;
  readonly note?: ComponentChildren;
  readonly ms: number;
  readonly percent: number | null;
  readonly colour: string;
  readonly href: string | null;
}

interface RankedCardProps {
  title: string;
  note?: ComponentChildren;
  actions?: ComponentChildren;
  rows: readonly RankedRow[];
  field: Field;
  /** How many rows of the table below have no bar, and their share. */
  rest?: { readonly count: number; readonly percent: number };
  /** Below the bars. */
  children?: ComponentChildren;
}

/** Ranked bars, longest first; each links to its place in the timeline.  Nothing where all are empty. */
export function RankedCard({ title, note, actions, rows, field, rest, children }: RankedCardProps) {
  const longest = Math.max(...rows.map((row) => row.ms));
  if (!(longest > 0)) return null;
  return (
    <Card title={title} note={note} actions={actions}>
      <ul class="ranked" aria-label={title} data-marks={rows.filter((row) => row.ms > 0).length}>
        {rows.map((row) => {
          const content = (
            <>
              <span class="ranked-name list shrinks">
                <LongName text={row.label} {...(row.whole ? { whole: row.whole } : {})} />
                {row.note && <span class="muted">{row.note}</span>}
              </span>
              <span class="hbar-track">
                <span style={{ width: `${(100 * row.ms) / longest}%`, background: row.colour }} />
              </span>
              <span class="hbar-value strong to-right oneline">{duration(row.ms)}</span>
              <span class="muted to-right oneline">{row.percent === null ? "" : percent(row.percent)}</span>
            </>
          );
          const said = hint(`${row.whole ?? row.label} · ${field.label}`, field.doc, `${row.ms} ms`);
          return (
            <li key={row.key}>
              {row.href ? (
                <a class="ranked-row list gap-l" href={row.href} {...said}>
                  {content}
                </a>
              ) : (
                <span class="ranked-row list gap-l" tabIndex={0} {...said}>
                  {content}
                </span>
              )}
            </li>
          );
        })}
        {rest && rest.count > 0 && (
          <li class="muted">
            {`and ${rest.count.toLocaleString("en-US")} more${rest.percent ? `, ${percent(rest.percent)}` : ""}`}
            {": in the table"}
          </li>
        )}
      </ul>
      {children}
    </Card>
  );
}

/** What rows without a bar come to: shares of all rows add up to the whole. */
export function restOf(
  all: readonly { readonly percent?: number | null }[],
  shown: readonly { readonly percent?: number | null }[],
): { count: number; percent: number } {
  const sum = (rows: typeof all) => rows.reduce((total, { percent: share }) => total + (share ?? 0), 0);
  return { count: all.length - shown.length, percent: Math.max(0, sum(all) - sum(shown)) };
}
