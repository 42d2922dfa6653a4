/** The tools that the server offers, as the page shows them: in the order of the rail, with short names and keys. */
import { computed } from "@preact/signals";
import { PAGES } from "./pages/map";
import { config, session } from "./session";

export interface ToolEntry {
  readonly name: string;
  readonly label: string;
  /** On the page itself, where there is room. */
  readonly heading: string;
  readonly title: string;
  readonly summary: string;
  readonly key: string | null;
  readonly missing: string | null;
  /** It has an entry in the map of pages; others show their sections in order. */
  readonly hasPage: boolean;
}

const ORDER = Object.keys(PAGES);

const TIMELINE = { name: "timeline", title: "Timeline", summary: "every event of every thread and device over time" };

export const tools = computed<readonly ToolEntry[]>(() => {
  const offered = config.value?.tools ?? [];
  const all = offered.some((tool) => tool.name === "timeline") ? offered : [TIMELINE, ...offered];
  const rank = (name: string) => ORDER.indexOf(name) >>> 0;
  return [...all]
    .sort((a, b) => rank(a.name) - rank(b.name))
    .map((tool) => {
      const known = Object.hasOwn(PAGES, tool.name) ? PAGES[tool.name] : undefined;
      return {
        name: tool.name,
        label: known?.label ?? tool.title,
        heading: known?.heading ?? known?.label ?? tool.title,
        title: tool.title,
        summary: tool.summary,
        key: known?.key ?? null,
        missing: missingOf(tool.name),
        hasPage: known !== undefined,
      };
    });
});

function missingOf(name: string): string | null {
  const state = session.value?.tools.find((tool) => tool.name === name);
  return state?.has_data === false ? (state.missing ?? "this profile has no data for it") : null;
}

export function toolEntry(name: string): ToolEntry | null {
  return tools.value.find((tool) => tool.name === name) ?? null;
}
