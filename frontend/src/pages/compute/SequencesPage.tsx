import type { ToolAnswer } from "../../api";
import { CATEGORY_COLOUR, categoryOf, inkOn } from "../../design/colours";
import { duration } from "../../format";
import { findInTimeline } from "../../links";
import { middleCut, shortKernel } from "../../names";
import { docOf, type TableOf, tableOf } from "../../sections";
import { Card } from "../../ui/basics";
import { hint } from "../../ui/hint";
import { Icon } from "../../ui/icons";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import { TableCard } from "../shared/sections";

const MOST_CHAINS = 6;
const CHIP = 48; // letters
const ARROW = " -> ";

const TEXTS = {
  kernels: (text: string) => split(text).join(" → "),
  ops: (text: string) => text.replaceAll(ARROW, " → "),
};

export default function Sequences({ sections }: ToolAnswer<"sequences">) {
  const [ofOps, onStreams] = [tableOf(sections, "ops"), tableOf(sections, "rows")];
  return (
    <>
      <Findings lines={savingSentences(onStreams)} />
      <Card
        title="Dearest sequences to start"
        note="fused into one kernel or replayed as one graph, each is started once"
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

/** What starting the dearest sequence takes, and how many launches one kernel in its place saves. */
function savingSentences({ columns }: TableOf<"sequences", "rows">): readonly string[] {
  const at = (name: "host_us" | "length" | "count" | "launches_saved") => Number(columns?.[name]?.[0] ?? 0);
  if (!at("launches_saved")) return [];
  const [kernels, times] = [at("length").toLocaleString("en-US"), at("count").toLocaleString("en-US")];
  const fewer = `As one kernel or graph each, it takes ${at("launches_saved").toLocaleString("en-US")} launches fewer`;
  if (!at("host_us")) return [`One sequence of ${kernels} kernels runs ${times} times`, fewer];
  const saved = (at("host_us") * (at("length") - 1)) / at("length") / 1e3;
  return [
    `Starting one sequence of ${kernels} kernels ${times} times takes the host ${duration(at("host_us") / 1e3)}`,
    `${fewer}, about ${duration(saved)} of the host; steps get shorter where a device waits for its launches`,
  ];
}

const split = (text: string) => text.split(ARROW).map(shortKernel);
const kernelsOf = (table: TableOf<"sequences", "rows">, row: number) => String(table.columns?.kernels?.[row] ?? "");

function firstKernel(table: TableOf<"sequences", "rows">, row: number) {
  const first = kernelsOf(table, row).split(ARROW)[0];
  return first ? [{ label: "Find the first kernel in the timeline", href: findInTimeline(first) }] : [];
}

function Chains({ table }: { table: TableOf<"sequences", "rows"> }) {
  const { columns, row_count } = table;
  if (!columns) return null;
  const value = (name: "host_us" | "launches_saved" | "count", row: number) => Number(columns[name]?.[row] ?? 0);
  return (
    <ol class="chains" data-marks={Math.min(row_count, MOST_CHAINS)}>
      {Array.from({ length: Math.min(row_count, MOST_CHAINS) }, (_, row) => {
        const [times, fewer] = [value("count", row), value("launches_saved", row)].map((each) =>
          each.toLocaleString("en-US"),
        );
        const [link] = firstKernel(table, row);
        return (
          <li key={row}>
            <div
              class="chain-facts list muted minor"
              tabIndex={0}
              {...hint("Host time", docOf(table, "host_us"), `${value("host_us", row)} µs`)}
            >
              {value("host_us", row) > 0 && <strong>{duration(value("host_us", row) / 1e3)} on the host</strong>}
              <span>{times} times</span>
              <span>{fewer} launches fewer</span>
            </div>
            <Chain kernels={split(kernelsOf(table, row))} ops={String(columns.ops?.[row] ?? "").split(ARROW)} />
            {link && (
              <a class="icon-button small" href={link.href} aria-label={link.label} {...hint(link.label, "")}>
                <Icon name="arrow" size={14} />
              </a>
            )}
          </li>
        );
      })}
    </ol>
  );
}

/** `replica_4/bert/layer_0/dropout/Mul` as `dropout/Mul`: layers of a model differ before that. */
function lastOf(op: string): string {
  return op.split("/").slice(-2).join("/");
}

/** A short kernel name; with the operation if one template serves many operations. */
function chainName(name: string): string {
  const functor = /(\w+?)_?[Ff]unctor/.exec(name.slice(name.indexOf("<")))?.[1];
  const base = (name.split("<")[0] as string).replace(/^.*::/, "");
  return functor && name.includes("<") ? `${base} · ${functor}` : base;
}

/** Writes an op, or a kernel without one, that repeats in a row once. */
function runs(names: readonly string[], kernels: readonly string[]) {
  const found: { name: string; kernels: string[] }[] = [];
  for (const [at, name] of names.entries()) {
    const [last, kernel] = [found.at(-1), kernels[at] ?? ""];
    if (last?.name === name) last.kernels.push(kernel);
    else found.push({ name, kernels: [kernel] });
  }
  return found;
}

/** By its op, which says what is computed, where the recording names it. */
function Chain({ kernels, ops }: { kernels: readonly string[]; ops: readonly string[] }) {
  const names = kernels.map((kernel, at) => lastOf(ops[at] ?? "") || chainName(kernel));
  return (
    <ul class="chain flex wrap gap-s">
      {runs(names, kernels).map(({ name, kernels }, at) => {
        const colour = CATEGORY_COLOUR[categoryOf(name)];
        return (
          <li
            key={at}
            style={{ background: colour, color: inkOn(colour) }}
            data-hint-value={[...new Set(kernels)].join("\n")}
          >
            {middleCut(name, CHIP)}
            {kernels.length > 1 && ` × ${kernels.length}`}
          </li>
        );
      })}
    </ul>
  );
}
