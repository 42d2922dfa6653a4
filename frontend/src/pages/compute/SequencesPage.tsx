import type { ToolAnswer } from "../../api";
import { CATEGORY_COLOUR, categoryOf, inkOn } from "../../design/colours";
import { duration, percent } from "../../format";
import { findInTimeline } from "../../links";
import { docOf, type TableOf, tableOf } from "../../sections";
import { Card } from "../../ui/basics";
import { hint } from "../../ui/hint";
import { Icon } from "../../ui/icons";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import { shortKernel } from "../shared/names";
import { TableCard } from "../shared/sections";

const MOST_CHAINS = 6;
const ARROW = " -> ";

const TEXTS = {
  kernels: (text: string) => split(text).join(" → "),
  ops: (text: string) => text.replaceAll(ARROW, " → "),
};

export default function Sequences({ sections }: ToolAnswer<"sequences">) {
  const [ofOps, onStreams] = [tableOf(sections, "ops"), tableOf(sections, "rows")];
  return (
    <>
      <Findings lines={[savingSentence(onStreams)]} />
      <Card
        title="Largest savings in launches"
        note="a sequence that is fused into one kernel or replayed as one graph is launched once"
      >
        <Chains table={onStreams} />
      </Card>
      <TableCard section={onStreams} id="sequences" main texts={TEXTS} links={(row) => firstKernel(onStreams, row)} />
      <More title="Sequences of ops" tables={["ops"]}>
        <TableCard section={ofOps} id="ops" texts={TEXTS} />
      </More>
    </>
  );
}

/** What the sequence that saves most would save. */
function savingSentence({ columns }: TableOf<"sequences", "rows">): string {
  const saved = columns?.launches_saved ?? [];
  const at = saved.reduce<number>((best, value, row) => (Number(value) > Number(saved[best] ?? 0) ? row : best), 0);
  if (!(Number(saved[at] ?? 0) > 0)) return "";
  const [launches, count] = [Number(saved[at]), Number(columns?.count?.[at])].map((each) =>
    each.toLocaleString("en-US"),
  );
  return `${launches} launches are saved if the sequence that runs ${count} times becomes one kernel or one graph`;
}

function split(text: string): string[] {
  return text.split(ARROW).map(shortKernel);
}

function kernelsOf(table: TableOf<"sequences", "rows">, row: number): string {
  return String(table.columns?.kernels?.[row] ?? "");
}

function firstKernel(table: TableOf<"sequences", "rows">, row: number) {
  const first = kernelsOf(table, row).split(ARROW)[0];
  return first ? [{ label: "Find the first kernel in the timeline", href: findInTimeline(first) }] : [];
}

function Chains({ table }: { table: TableOf<"sequences", "rows"> }) {
  if (!table?.columns) return null;
  const value = (name: "launches_saved" | "count" | "device_us" | "percent", row: number) =>
    Number(table.columns?.[name]?.[row] ?? 0);
  const rows = Array.from({ length: table.row_count }, (_, row) => row)
    .sort((a, b) => value("launches_saved", b) - value("launches_saved", a))
    .slice(0, MOST_CHAINS);
  return (
    <ol class="chains" data-marks={rows.length}>
      {rows.map((row) => (
        <li key={row}>
          <div class="chain-facts list muted minor">
            <strong
              tabIndex={0}
              {...hint("Launches saved", docOf(table, "launches_saved"), String(value("launches_saved", row)))}
            >
              {value("launches_saved", row).toLocaleString("en-US")} launches
            </strong>
            <span
              tabIndex={0}
              {...hint("Count", docOf(table, "count"), String(value("count", row)))}
            >{`${value("count", row).toLocaleString("en-US")} times`}</span>
            <span
              tabIndex={0}
              {...hint("Device time", docOf(table, "device_us"), `${value("device_us", row)} µs`)}
            >{`${duration(value("device_us", row) / 1e3)}, ${percent(value("percent", row))}`}</span>
          </div>
          <Chain kernels={split(kernelsOf(table, row))} ops={String(table.columns?.ops?.[row] ?? "").split(ARROW)} />
          {firstKernel(table, row).map((link) => (
            <a
              key={link.href}
              class="icon-button small"
              href={link.href}
              aria-label={link.label}
              {...hint(link.label, "")}
            >
              <Icon name="arrow" size={14} />
            </a>
          ))}
        </li>
      ))}
    </ol>
  );
}

/** A short kernel name; with the operation if one template serves many operations. */
function chainName(name: string): string {
  const functor = /(\w+?)_?[Ff]unctor/.exec(name.slice(name.indexOf("<")))?.[1];
  const base = (name.split("<")[0] as string).replace(/^.*::/, "");
  return functor && name.includes("<") ? `${base} · ${functor}` : base;
}

/** Writes a kernel that repeats in a row once. */
function runs(names: readonly string[]): { name: string; at: number; times: number }[] {
  const found: { name: string; at: number; times: number }[] = [];
  for (const [at, name] of names.entries()) {
    const last = found.at(-1);
    if (last?.name === name) last.times += 1;
    else found.push({ name, at, times: 1 });
  }
  return found;
}

/** By its op, which says what is computed, where the recording names it. */
function Chain({ kernels, ops }: { kernels: readonly string[]; ops: readonly string[] }) {
  return (
    <ul class="chain flex wrap gap-s">
      {runs(kernels).map(({ name, at, times }) => {
        const colour = CATEGORY_COLOUR[categoryOf(ops[at] || name)];
        return (
          <li key={at} style={{ background: colour, color: inkOn(colour) }} data-hint-value={name}>
            {ops[at] || chainName(name)}
            {times > 1 && ` × ${times}`}
          </li>
        );
      })}
    </ul>
  );
}
