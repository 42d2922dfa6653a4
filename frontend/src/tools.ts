/** The questions and tools as the page shows them for the open session. */
import { computed } from "@preact/signals";
import { placeOf, QUESTIONS, type Question, SHOWN_TOOLS, type View } from "./questions";
import { linkTo, route } from "./router";
import { config, fact, isReady, session, watchedRuns } from "./session";

export interface ToolEntry {
  readonly name: string;
  /** As a title. */
  readonly heading: string;
  readonly title: string;
  readonly summary: string;
  readonly missing: string | null;
}

const TIMELINE = { name: "timeline", title: "Timeline", summary: "every event of every thread and device over time" };
const SQL = { name: "sql", title: "SQL", summary: "ask the profile a question that no page answers" };
const OVER_TIME = { name: "over-time", title: "Over time", summary: "a watched run over hours and days" };

export const tools = computed<readonly ToolEntry[]>(() => {
  const offered = config.value?.tools ?? [];
  const all = [
    ...[TIMELINE, SQL, OVER_TIME].filter(({ name }) => !offered.some((tool) => tool.name === name)),
    ...offered,
  ];
  const rank = (name: string) => SHOWN_TOOLS.indexOf(name) >>> 0;
  return [...all]
    .sort((a, b) => rank(a.name) - rank(b.name))
    .map((tool) => {
      const view = placeOf(tool.name)?.view;
      return {
        name: tool.name,
        heading: view?.heading ?? view?.label ?? tool.title,
        title: tool.title,
        summary: tool.summary,
        missing: missingOf(tool.name),
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

/** A question with its views, which keep their places whatever the session has: a switch or a rail that changes moves
 * from under the pointer. */
export interface OpenQuestion extends Question {
  /** Of its first view that has something. */
  readonly href: string;
  /** Why none of its views has anything; null if one has, or may have. */
  readonly missing: string | null;
}

/** The questions that the page can ask, and those of tools from other packages that have something. */
export const questions = computed<readonly OpenQuestion[]>(() => {
  const known = QUESTIONS.map((question) => ({ ...question, views: question.views.filter(isOffered) }));
  const strange = tools.value.filter((tool) => !placeOf(tool.name) && !tool.missing).map(ownQuestion);
  return [...known, ...strange]
    .filter((question) => question.views.length > 0)
    .map((question) => {
      const open = question.views.find((view) => !lackOf(view));
      const first = question.views[0] as View;
      return { ...question, href: linkOf(open ?? first), missing: open ? null : lackOf(first) };
    });
});

/** The question of a tool that the page does not know, from another package. */
function ownQuestion(tool: ToolEntry): Question {
  const view = { path: "", tool: tool.name, label: tool.title };
  return { name: tool.name, label: tool.title, key: "", switchLabel: "Show", views: [view] };
}

function isOffered({ tool }: View): boolean {
  if (tool === OVER_TIME.name) return route.value.tool === tool || watchedRuns.value.length > 0;
  return tools.value.some((each) => each.name === tool);
}

/** What the open session has not, so that a view would be empty; null if it has it, or may have. */
export function lackOf({ tool, groups }: View): string | null {
  const state = session.value?.tools.find((each) => each.name === tool);
  if (groups && state?.lacks?.includes(groups)) return `no ${groups}s were recorded`;
  if (OF_RANKS.includes(tool) && isReady.value && !hasRanks()) return "one process on one device: nothing to compare";
  return missingOf(tool);
}

const OF_RANKS = ["distributed", "pod-viewer"];

/** Whether the session has anything to compare or to exchange: several processes, devices, or collectives. */
function hasRanks(): boolean {
  if ((session.value?.hosts.length ?? 0) > 1) return true;
  return Number(fact("devices_used") ?? 0) > 1 || Number(fact("collectives_ms") ?? 0) > 0;
}

/** The address of a view, for a link. */
export function linkOf(view: View): string {
  return linkTo(view.tool, view.by ? { by: view.by } : {});
}

/** The view that the address shows. */
export const currentView = computed<View | null>(() => placeOf(route.value.tool, route.value.params.by)?.view ?? null);

/** The question that the address asks. */
export const currentQuestion = computed<OpenQuestion | null>(
  () => questions.value.find((question) => question.views.some((view) => view.tool === route.value.tool)) ?? null,
);
