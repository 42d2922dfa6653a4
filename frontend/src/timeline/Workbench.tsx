/** The workbench below the timeline: tabs about the selection, the search or the window. */

import { computed, signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { route, setParams } from "../router";
import { remember, remembered } from "../storage";
import { IconButton } from "../ui/controls";
import { CallTreeTab, FlameTab } from "./CallTabs";
import { MarksTab } from "./MarksTab";
import type { Model } from "./model";
import { SelectionTab } from "./SelectionTab";
import { DurationsTab, SlicesTab } from "./SliceTabs";

interface Tab {
  readonly id: string;
  readonly label: string;
  readonly content: ComponentType<{ model: Model }>;
}

/** In the order in which they are shown.  Another tab is one line here. */
const TABS: readonly Tab[] = [
  { id: "details", label: "Selection", content: SelectionTab },
  { id: "slices", label: "Longest events", content: SlicesTab },
  { id: "flame", label: "Flame graph", content: FlameTab },
  { id: "calls", label: "Call tree", content: CallTreeTab },
  { id: "durations", label: "Durations", content: DurationsTab },
  { id: "marks", label: "Marks", content: MarksTab },
];

export function setTab(id: string | null): void {
  setParams({ tab: id });
}

/** An event is said in a sentence; tables and graphs need more room. */
const HEIGHT = { least: 120, event: 160, usual: 300 };
const stored = remembered("workbench");
/** As the reader has dragged it; null until then. */
const dragged = signal(typeof stored === "number" ? stored : null);
const fitting = signal(HEIGHT.usual);
const height = computed(() => dragged.value ?? fitting.value);

export function Workbench({ model }: { model: Model }) {
  const isSelected = [model.details, model.region, model.run].some((each) => each.value !== null);
  const problem = model.problem.value;
  const wanted = route.value.params.tab;
  const tab = TABS.find((each) => each.id === wanted) ?? (TABS[0] as Tab);
  const isOfEvent = tab === TABS[0] && model.region.value === null;
  useEffect(() => {
    fitting.value = isOfEvent ? HEIGHT.event : HEIGHT.usual;
  }, [isOfEvent]);
  if (!isSelected && !problem && !wanted) return null;
  const close = () => {
    void model.choose(null);
    void model.select(null);
    model.problem.value = null;
    setTab(null);
  };
  return (
    <section class="tl-pane" aria-label="Workbench" style={{ height: `${shownHeight(height.value)}px` }}>
      <Splitter />
      <header class="wb-head row spread gap-m rigid">
        <div role="tablist" aria-label="Workbench" onKeyDown={(event) => moveTab(event, tab)}>
          {TABS.map((each) => (
            <button
              key={each.id}
              type="button"
              role="tab"
              id={`tab-${each.id}`}
              aria-selected={each === tab}
              aria-controls="workbench-panel"
              tabIndex={each === tab ? 0 : -1}
              onClick={() => setTab(each.id)}
            >
              {each.label}
              {each.id === "marks" && model.marks.value.length > 0 && ` (${model.marks.value.length})`}
            </button>
          ))}
        </div>
        <IconButton icon="close" size={15} label="Close" title="Close (Esc)" onClick={close} />
      </header>
      {problem && <p class="tl-problem">{problem}</p>}
      <div class="wb-panel" id="workbench-panel" role="tabpanel" aria-labelledby={`tab-${tab.id}`} tabIndex={0}>
        <tab.content key={tab.id} model={model} />
      </div>
    </section>
  );
}

function moveTab(event: KeyboardEvent, from: Tab): void {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by) return;
  event.preventDefault();
  event.stopPropagation();
  const next = TABS[(TABS.indexOf(from) + by + TABS.length) % TABS.length] as Tab;
  setTab(next.id);
  document.getElementById(`tab-${next.id}`)?.focus();
}

/** At most most of the window: the tracks keep some room. */
function shownHeight(wanted: number): number {
  return Math.max(HEIGHT.least, Math.min(wanted, window.innerHeight - 320));
}

function resize(to: number): void {
  dragged.value = Math.round(Math.max(HEIGHT.least, Math.min(to, window.innerHeight - 200)));
  remember("workbench", dragged.value);
}

const STEP = 24;

function Splitter() {
  const from = useRef<{ y: number; height: number } | null>(null);
  return (
    <div
      class="wb-splitter"
      role="separator"
      aria-label="Height of the workbench"
      aria-orientation="horizontal"
      aria-valuenow={height.value}
      tabIndex={0}
      onKeyDown={(event) => {
        const by = { ArrowUp: STEP, ArrowDown: -STEP }[event.key];
        if (!by) return;
        event.preventDefault();
        event.stopPropagation();
        resize(shownHeight(height.value) + by);
      }}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        from.current = { y: event.clientY, height: shownHeight(height.value) };
      }}
      onPointerMove={(event) => from.current && resize(from.current.height + from.current.y - event.clientY)}
      onPointerUp={() => {
        from.current = null;
      }}
    />
  );
}
