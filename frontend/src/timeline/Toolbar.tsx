/** The bar above the timeline: tools, host and search. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { route, setParams } from "../router";
import { remember } from "../storage";
import { FileMenu } from "../ui/FileMenu";
import { Icon } from "../ui/icons";
import { type Model, TOOLS, type Tool } from "./model";
import { duration } from "./ticks";
import { setTab } from "./Workbench";

export const TOOL_TEXT: Readonly<Record<Tool, { label: string; does: string; icon: string }>> = {
  select: { label: "Select", does: "Drag over tracks to sum up their events (1)", icon: "M4 3l12 6-5 1.6L9.5 16z" },
  pan: {
    label: "Pan",
    does: "Drag to move, click to select (2)",
    icon:
      "M10 2v16M2 10h16M10 2 7.8 4.4M10 2l2.2 2.4" +
      "M10 18l-2.2-2.4M10 18l2.2-2.4M2 10l2.4-2.2M2 10l2.4 2.2M18 10l-2.4-2.2M18 10l-2.4 2.2",
  },
  zoom: {
    label: "Zoom",
    does: "Drag over a time range to zoom to it (3)",
    icon: "M8.5 3.5a5 5 0 1 0 .01 0M12.5 12.5l4 4M8.5 6.5v4M6.5 8.5h4",
  },
  measure: {
    label: "Measure",
    does: "Drag to measure a time (4, or hold Shift)",
    icon: "M3 5v10M17 5v10M3 10h14M5.5 7.8 3 10l2.5 2.2M14.5 7.8 17 10l-2.5 2.2",
  },
};

export function Toolbar({ model, search }: { model: Model; search: { current: HTMLInputElement | null } }) {
  const hidden = model.choices.value.hidden.size;
  const { begin, end } = model.span.value;
  return (
    <div class="tl-toolbar row gap-l rigid">
      <div class="segmented tl-tools" role="group" aria-label="What dragging does">
        {TOOLS.map((tool) => (
          <button
            type="button"
            key={tool}
            aria-pressed={model.tool.value === tool}
            aria-label={TOOL_TEXT[tool].label}
            title={TOOL_TEXT[tool].does}
            onClick={() => (model.tool.value = tool)}
          >
            <svg class="icon" width="16" height="16" viewBox="0 0 20 20" aria-hidden="true">
              <path d={TOOL_TEXT[tool].icon} />
            </svg>
            <span>{TOOL_TEXT[tool].label}</span>
          </button>
        ))}
      </div>
      <SearchBox model={model} input={search} />
      {model.tracks.has_library_calls && <OwnCode isOwn={model.source.ownCode} />}
      <span class="tl-space fills" />
      {hidden > 0 && (
        <button
          type="button"
          class="button"
          title="Tracks that you hid, and those that hold the profiler's own work"
          onClick={() => model.showAll()}
        >
          Show {hidden} hidden
        </button>
      )}
      <span class="tl-window strong oneline" title="Length of the visible window">
        {duration(end - begin)}
      </span>
      <div class="tl-zoom" role="group" aria-label="Zoom">
        <button
          type="button"
          class="button"
          title="Zoom out (S)"
          aria-label="Zoom out"
          onClick={() => model.zoomKey(-1)}
        >
          −
        </button>
        <button type="button" class="button" title="Zoom in (W)" aria-label="Zoom in" onClick={() => model.zoomKey(1)}>
          +
        </button>
        <button
          type="button"
          class="button"
          title="All steps; once more: everything that was recorded (F)"
          onClick={() => model.fitAll()}
        >
          Fit
        </button>
      </div>
      <button
        type="button"
        class="button quiet"
        aria-pressed={route.value.params.tab !== undefined}
        title="Longest events, flame graph, call tree, durations, counters (B)"
        onClick={() => setTab(route.value.params.tab ? null : "slices")}
      >
        Workbench
      </button>
      {model.source.isServed && (
        <FileMenu
          label="Export the trace"
          text="Export"
          files={FILES.map(([form, label]) => ({ label, href: model.source.file(form) }))}
        />
      )}
    </div>
  );
}

/** Folds the Python calls of libraries, or shows them. */
function OwnCode({ isOwn }: { isOwn: boolean }) {
  const toggle = () => {
    remember("ownCode", !isOwn);
    setParams({ code: isOwn ? "all" : null }, "push");
  };
  return (
    <label
      class="inline-row gap-m oneline minor"
      title="Folds Python calls of libraries and wrappers; what they call stays"
    >
      <input type="checkbox" checked={isOwn} onChange={toggle} /> Just my code
    </label>
  );
}

const FILES = [
  ["perfetto", "Perfetto, for ui.perfetto.dev"],
  ["chrome", "Chrome trace JSON"],
  ["pprof", "pprof, call stacks"],
  ["collapsed", "Collapsed stacks, for flame graphs"],
] as const;

const WAIT_MS = 180;

function SearchBox({ model, input }: { model: Model; input: { current: HTMLInputElement | null } }) {
  const sought = model.sought.value;
  const found = sought ? model.found.value : null;
  const [text, setText] = useState(sought?.text ?? "");
  const [regex, setRegex] = useState(sought?.regex ?? false);
  const timer = useRef(0);
  useLayoutEffect(() => {
    // Somebody else searched (a link), or cleared the search.
    if (document.activeElement !== input.current || !sought) {
      setText(sought?.text ?? "");
      if (sought) setRegex(sought.regex);
    }
  }, [sought?.text, sought?.regex]);
  const search = (next: string, asRegex: boolean) => {
    setText(next);
    setRegex(asRegex);
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => void model.search(next, asRegex, true), WAIT_MS);
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.key === "Enter") {
      event.preventDefault();
      window.clearTimeout(timer.current);
      const first = model.found.peek()?.text === text ? Promise.resolve() : model.search(text, regex, true);
      void first.then(() => model.step(event.shiftKey ? "previous" : "next"));
    } else if (event.key === "Escape") {
      event.stopPropagation();
      input.current?.blur(); // what was found stays; pressed again it goes
    }
  };
  return (
    <div class={`tl-search inline-row gap-s muted ${model.searchProblem.value ? "has-problem" : ""}`} role="search">
      <Icon name="search" size={15} />
      <input
        ref={(element) => {
          input.current = element;
        }}
        type="text"
        placeholder="Find events by name  ( / )"
        aria-label="Find events by name"
        spellcheck={false}
        value={text}
        onInput={(event) => search(event.currentTarget.value, regex)}
        onKeyDown={pressed}
      />
      <span class="tl-count minor oneline" role="status" title={model.searchProblem.value ?? ""}>
        {model.searchProblem.value
          ? "invalid pattern"
          : found && found.text === sought?.text
            ? counted(found.number, found.total)
            : sought
              ? "…"
              : ""}
      </span>
      <button
        type="button"
        aria-pressed={regex}
        title="Search by regular expression"
        aria-label="Regular expression"
        onClick={() => search(text, !regex)}
      >
        .*
      </button>
      <button
        type="button"
        disabled={!found?.total}
        title="Previous (N)"
        aria-label="Previous match"
        onClick={() => void model.step("previous")}
      >
        ↑
      </button>
      <button
        type="button"
        disabled={!found?.total}
        title="Next (n)"
        aria-label="Next match"
        onClick={() => void model.step("next")}
      >
        ↓
      </button>
    </div>
  );
}

function counted(number: number | null, total: number): string {
  const all = total.toLocaleString("en-US");
  if (!total) return "none";
  return number === null ? all : `${number.toLocaleString("en-US")} of ${all}`;
}
