/** The small parts that every page is made of. */
import type { ComponentChildren } from "preact";
import type { ApiError, Cell, Field, Figures } from "../api";
import { CATEGORIES, CATEGORY_LABEL, type Category } from "../design/colours";
import { cellText, exact, inUnit, isKnown, TIMES, threeDigits, unitLabel, visible } from "../format";
import { linkTo } from "../router";
import { termsOf } from "../terms";
import { toolEntry } from "../tools";
import { type HintAttributes, hint } from "./hint";
import { Icon } from "./icons";

interface CardProps {
  title?: ComponentChildren;
  /** What the title says on hover. */
  titleHint?: HintAttributes;
  note?: ComponentChildren;
  actions?: ComponentChildren;
  children?: ComponentChildren;
  class?: string;
  label?: string;
}

export function Card({ title, titleHint = {}, note, actions, children, class: name = "", label }: CardProps) {
  return (
    <section class={`card ${name}`} {...(label ? { "aria-label": label } : {})}>
      {(title || actions) && (
        <header class="card-head baseline-row below-l wrap">
          {title && <h2 {...titleHint}>{title}</h2>}
          {note && <span class="card-note muted minor shrinks">{note}</span>}
          {actions && <div class="card-actions row to-end gap-l minor">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

interface LongNameProps {
  text: string;
  whole?: string;
  /** How many characters there is room for, where that is known: half of them are kept for the end. */
  room?: number;
}

/** A long name whose end stays visible; the whole is shown on hover. */
export function LongName({ text, whole = text, room }: LongNameProps) {
  const shown = visible(text);
  const tail = tailOf(shown, room);
  return (
    <span
      class="long-name flex shrinks"
      data-hint-value={tail || text.length > 24 || whole !== text ? whole : undefined}
    >
      <span class="long-head">{tail ? shown.slice(0, -tail) : shown}</span>
      {tail > 0 && <span class="long-tail">{shown.slice(-tail)}</span>}
    </span>
  );
}

const TAIL = 12;

/** How many characters of a name's end stand apart: what distinguishes long names is rarely their start. */
export function tailOf(text: string, room?: number): number {
  if (room !== undefined) return text.length > room ? Math.max(4, Math.floor(room * 0.55)) : 0;
  return text.length > 2 * TAIL ? TAIL : 0;
}

/** One number with its name, in large type. */
export function Figure({
  field,
  value,
  label,
  note,
}: {
  field: Field;
  value: Cell | undefined;
  label?: string;
  note?: string;
}) {
  const [number, shownUnit] = inUnit(value, field.unit);
  const unit = unitLabel(shownUnit);
  const known = isKnown(value);
  const look = `${known ? "" : "unknown"} ${typeof value === "string" ? "is-text" : ""}`;
  return (
    <div class="figure" tabIndex={0} {...hint(label ?? field.label, field.doc, exact(value, field.unit))}>
      <div class="figure-label muted minor">{label ?? field.label}</div>
      <div class={`figure-value title-size strong breaks ${look}`}>
        {typeof value === "string" ? (termsOf(field)?.(value) ?? value) : figureText(number, shownUnit)}
        {known && unit && field.unit !== "percent" && <span class="figure-unit muted minor"> {unit}</span>}
      </div>
      {note && <div class="figure-note">{note}</div>}
    </div>
  );
}

/** A figure's number; a time has as many digits as in the sentences beside it. */
function figureText(number: Cell | undefined, unit: string): string {
  return typeof number === "number" && TIMES.includes(unit) ? threeDigits(number) : cellText(number, unit);
}

export function FigureRow({ section, names }: { section: Figures; names?: readonly string[] }) {
  const fields = names
    ? names.flatMap((name) => section.fields.filter((field) => field.name === name))
    : section.fields;
  return (
    <div class="figures">
      {fields.map((field) => (
        <Figure key={field.name} field={field} value={section.values[field.name]} />
      ))}
    </div>
  );
}

const MOST_CHOICES = 40;

export function Loading({ what = "Loading" }: { what?: string }) {
  return (
    <div class="state" role="status">
      <span class="spinner" aria-hidden="true" />
      <span>{what}</span>
    </div>
  );
}

interface FailedProps {
  error: ApiError;
  retry?: () => void;
  /** Where each of the error's choices leads. */
  link?: (choice: string) => string;
  /** What the page calls a choice. */
  name?: (choice: string) => string;
}

export function Failed({ error, retry, link, name = (choice) => choice }: FailedProps) {
  return (
    <div class="state failed" role="alert">
      <Icon name="warning" />
      <div>
        <p class="title-size strong breaks">{sentence(error.message)}</p>
        {error.hint && <p>{sentence(error.hint)}</p>}
        {error.choices.length > 0 && (
          <ul class="choices-inline flex wrap above-m muted">
            {error.choices.slice(0, MOST_CHOICES).map((choice) => (
              <li key={choice}>{link ? <a href={link(choice)}>{name(choice)}</a> : name(choice)}</li>
            ))}
          </ul>
        )}
        {retry && (
          <button type="button" class="button" onClick={retry}>
            Try again
          </button>
        )}
      </div>
    </div>
  );
}

export function Empty({ title, text, children }: { title: string; text?: string; children?: ComponentChildren }) {
  return (
    <div class="state empty">
      <div>
        <p class="title-size strong breaks">{title}</p>
        {text && (
          <p>
            <Code text={sentence(text)} />
          </p>
        )}
        {children}
      </div>
    </div>
  );
}

const CATEGORY_NAMES = new RegExp(`\\b(${CATEGORIES.filter((name) => name.includes("_")).join("|")})\\b`, "g");

/** A title inside a sentence. */
export const uncapital = (text: string) => text.charAt(0).toLowerCase() + text.slice(1);

/** Sentences of the reports begin in lower case, since they may follow a colon, and write micro as a terminal can. */
export function sentence(text: string): string {
  const line = text
    .replace(/^\[[a-z_-]+\] /, "") // the code of a warning is for programs
    .replace(/(?<=\d )us\b/g, "µs")
    .replace(CATEGORY_NAMES, (name) => CATEGORY_LABEL[name as Category].toLowerCase());
  // A single word before a colon or a comma is a name, of a host or a memory, unless it is a verdict.
  return /^[a-z][a-z-]*(?:;|,(?! \S*:))? |^(?:[a-z-]+-bound|unknown): /.test(line)
    ? line.charAt(0).toUpperCase() + line.slice(1)
    : line;
}

export function Warnings({ items }: { items: readonly string[] }) {
  if (!items.length) return null;
  return (
    <ul class="warnings" aria-label="Warnings">
      {items.map((item) => (
        <li key={item}>
          <Icon name="warning" size={16} />
          <span>
            <Code text={sentence(item)} />
          </span>
        </li>
      ))}
    </ul>
  );
}

// In this order: a tool's command, a quotation, an op's whole path (`jit(f)/transpose(jvp())/dot`), a call, an option.
const PIECES = new RegExp(
  `(${[
    /`[^`]+`/,
    /\bstepscope [a-z][a-z-]+/,
    /[\w.:]+\([^\s/]*\)(?:\/[^\s/]+)*\/[^\s/]*[^\s/,;:.]/,
    /(?:(?:\/[\w.-]+)*\/|\.)?[A-Za-z_][\w.]*\((?:[^()]|\([^()]*\))*\)/,
    /--[a-z][\w-]*(?:[= ]\S+)?/,
  ]
    .map((piece) => piece.source)
    .join("|")})`,
  "g",
);

/** A sentence in turns: text at even places, what stands in a fixed-width face or leads to a page at odd ones. */
export function piecesOf(text: string): readonly string[] {
  return text.split(PIECES).map((part, index) => (index % 2 ? part.replace(/^`|`$/g, "") : part));
}

/** Text in which calls, options and ops stand in a fixed-width face, and a tool's command leads to its page. */
export function Code({ text }: { text: string }) {
  return <>{piecesOf(text).map((part, index) => (index % 2 ? <Piece key={index} text={part} /> : part))}</>;
}

/** Of a place in a program, all but its file and the folder around it: `lib/model/pipeline/` of `.../model.py:40 f`. */
const FOLDERS = /^\/?(?:[^\s/]+\/)+(?=[^\s/]+\/[^\s/]+\.py:\d+)/;

function Piece({ text }: { text: string }) {
  const tool = text.startsWith("stepscope ") ? toolEntry(text.slice("stepscope ".length)) : null;
  if (tool) return <a href={linkTo(tool.name)}>{tool.heading}</a>;
  const short = text.replace(FOLDERS, "");
  return <code data-hint-value={short === text ? undefined : text}>{short}</code>;
}

interface SegmentedProps<T extends string> {
  label: string;
  options: readonly { readonly value: T; readonly label: string }[];
  value: T;
  onChange: (value: T) => void;
}

/** A few choices side by side, one of them taken. */
export function Segmented<T extends string>({ label, options, value, onChange }: SegmentedProps<T>) {
  return (
    <div class="segmented" role="group" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === value}
          onClick={() => onChange(option.value)}
        >
          {option.label}
        </button>
      ))}
    </div>
  );
}
