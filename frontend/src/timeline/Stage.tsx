/** The tracks: labels on the left, the drawing on the right. */
import { useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { colourOfCause } from "../design/causes";
import { palette } from "../design/theme";
import { termText } from "../terms";
import { Frame } from "./frame";
import { Label, Labels } from "./Labels";
import type { Model } from "./model";
import { nearestActivity } from "./nearest";
import { OVERVIEW, overviewGroups, RULER, STEP_BAND } from "./paint";
import { shownCauses } from "./ribbon";
import { duration } from "./ticks";

export function Stage({ model }: { model: Model }) {
  const overview = useRef<HTMLCanvasElement>(null);
  const head = useRef<HTMLCanvasElement>(null);
  const tracks = useRef<HTMLCanvasElement>(null);
  const scroll = useRef<HTMLDivElement>(null);
  const frame = useMemo(() => new Frame(model), [model]);
  const layout = model.layout.value;
  useLayoutEffect(() => frame.mount(overview.current, head.current, tracks.current, scroll.current), [frame]);
  useSignalEffect(() => {
    void model.layout.value;
    frame.redraw();
  });
  return (
    <div class={`tl-stage list fills tl-tool-${model.tool.value}`}>
      <div class="tl-corner tl-corner-overview flex oneline">
        <OverviewCaption model={model} />
      </div>
      <canvas class="tl-overview" ref={overview} style={{ height: OVERVIEW }} />
      <div class="tl-corner tl-corner-rows flex spread" title={aboutSteps(model)}>
        <span class="muted">Time</span>
        <span class="muted">Steps</span>
      </div>
      <canvas class="tl-head" ref={head} style={{ height: RULER + STEP_BAND + layout.pinnedHeight }} tabIndex={-1} />
      {layout.pinnedItems.length > 0 && (
        <div
          class="tl-pinned"
          style={{
            top: `calc(var(--overview, ${OVERVIEW}px) + ${RULER + STEP_BAND + 2}px)`,
            height: layout.pinnedHeight,
          }}
        >
          {layout.pinnedItems.map((item) => (
            <Label key={item.id} item={item} model={model} />
          ))}
        </div>
      )}
      <Nearest model={model} />
      <div
        class="tl-scroll"
        ref={scroll}
        tabIndex={0}
        role="application"
        aria-label="Tracks. W and S zoom, A and D pan, arrows move the selection, question mark lists all keys."
      >
        <div class="tl-inner" style={{ height: layout.height }}>
          <canvas class="tl-tracks" ref={tracks} />
          <Labels model={model} />
        </div>
      </div>
      <Legend models={[model]} />
    </div>
  );
}

function aboutSteps(model: Model): string {
  const steps = model.steps.value;
  return steps ? [`Steps: ${steps.how}.`, steps.clocks].filter(Boolean).join("\n") : "";
}

/** Where a window is empty: the way to what is nearest, as far as the overview knows. */
function Nearest({ model }: { model: Model }) {
  const { begin, end } = model.span.value;
  void model.arrived.value; // more of the overview may have come
  const near = nearestActivity(model, begin, end);
  if (!near) return null;
  const go = (at: number) => {
    const half = (end - begin) / 2;
    model.show({ begin: at - half, end: at + half });
  };
  return (
    <div class="tl-nearest floats row wrap gap-m minor" role="status">
      <span>Nothing ran here.</span>
      {near.before !== null && (
        <button type="button" class="button" onClick={() => go(near.before as number)}>
          {`← ${duration(begin - near.before)} before`}
        </button>
      )}
      {near.after !== null && (
        <button type="button" class="button" onClick={() => go(near.after as number)}>
          {`${duration(near.after - end)} after →`}
        </button>
      )}
    </div>
  );
}

/** What the colours of the ribbons mean. */
export function Legend({ models }: { models: readonly Model[] }) {
  for (const { arrived, span } of models) void [arrived.value, span.value]; // colours come with the tiles
  const shown = [...new Set(models.flatMap(shownCauses))];
  if (!shown.length) return null;
  return (
    <ul class="tl-legend flex minor oneline" aria-label="What the step waits for" tabIndex={0}>
      <li class="muted">{models.some(hasDevices) ? "Devices" : "Critical path"}</li>
      {shown.map((cause) => (
        <li key={cause}>
          <span class="swatch" style={{ background: colourOfCause(cause, palette.value.surface) }} />
          {termText(cause)}
        </li>
      ))}
    </ul>
  );
}

/** Without devices the ribbon is that of the loop. */
function hasDevices({ tracks }: Model): boolean {
  return tracks.groups.some(({ kind, ribbon }) => kind === "device" && ribbon);
}

function OverviewCaption({ model }: { model: Model }) {
  const shown = overviewGroups(model.tracks.groups);
  return (
    <>
      {shown.map((group) => (
        <span key={group.id} title={group.detail}>
          {group.name} <span class="muted">{group.lanes > 1 ? "at work" : "busy"}</span>
        </span>
      ))}
    </>
  );
}
