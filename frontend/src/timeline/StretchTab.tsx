/** The chosen stretch of a ribbon: what it is spent on, and ways on from there. */
import { colourOfCause } from "../design/causes";
import { palette } from "../design/theme";
import { termText } from "../terms";
import { Code } from "../ui/basics";
import type { Model } from "./model";
import { duration, moment } from "./ticks";
import type { Culprit } from "./wire";

export function StretchDetails({ model }: { model: Model }) {
  const run = model.run.value;
  const found = model.stretch.value;
  if (!run) return null;
  if (!found) return <p class="muted tl-wait">Asking what this stretch is spent on …</p>;
  const group = model.tracks.groups.find((each) => each.ribbon === run.ribbon);
  const span = { begin: found.begin_ps, end: found.end_ps };
  const facts: (readonly [string, string])[] = [
    ["Cause", termText(found.cause)],
    [found.busy ? "Busy for" : "Lasts", `${duration(found.ps)}${found.count > 1 ? ` in ${found.count} pieces` : ""}`],
    ["Start", moment(span.begin)],
    ["End", moment(span.end)],
    ...culpritFacts(found.culprit),
  ];
  return (
    <div class="tl-details">
      <header class="tl-asked">
        <h2>
          <span class="swatch" style={{ background: colourOfCause(found.cause, palette.value.surface) }} />{" "}
          {group?.kind === "device" ? `${group.name} ` : ""}
          <Code text={found.sentence} />
        </h2>
        <div class="flex gap-m rigid">
          <button type="button" class="button" title="Zoom to it (F)" onClick={() => model.fit()}>
            Zoom to it
          </button>
          {found.spot && (
            <button type="button" class="button" onClick={() => found.spot && void model.goTo(found.spot)}>
              {found.busy ? "Longest work" : "What ran then"}
            </button>
          )}
          <button type="button" class="button" onClick={() => void model.choose({ ...span, tracks: null })}>
            Sum up all tracks
          </button>
        </div>
      </header>
      <dl class="tl-facts tl-only">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

/** What is known of a culprit, each with its name. */
export function culpritFacts(culprit: Culprit | null): (readonly [string, string])[] {
  if (!culprit) return [];
  const { name, file, line, op, layer } = culprit;
  return (
    [
      ["Line", file && `${file}:${line} ${name}`],
      ["Op", op],
      ["Layer", layer],
    ] as const
  ).flatMap(([label, value]) => (value ? [[label, value] as const] : []));
}
