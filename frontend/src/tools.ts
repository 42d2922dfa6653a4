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
const OF_THE_PAGE = ["timeline", "sql", "over-time"];

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

/** A question with the views that the open session has something for. */
export interface OpenQuestion extends Omit<Question, "views"> {
  readonly views: readonly View[];
  readonly href: string;
}

/** The questions that the open session can answer, and the one that the address asks. */
export const questions = computed<readonly OpenQuestion[]>(() => {
  const known = QUESTIONS.map((question) => ({ ...question, views: question.views.filter(isShown) }));
  const strange = tools.value.filter((tool) => !placeOf(tool.name) && !isKnownToLack(tool.name)).map(ownQuestion);
  return [...known, ...strange]
    .filter((question) => question.views.length > 0)
    .map((question) => ({ ...question, href: linkOf(question.views[0] as View) }));
});

/** The question of a tool that the page does not know, from another package. */
function ownQuestion(tool: ToolEntry): Question {
  const view = { path: "", tool: tool.name, label: tool.title };
  return { name: tool.name, label: tool.title, key: "", switchLabel: "Show", views: [view] };
}

/** Their place in the rail is known before their data is, since nearly every capture has some. */
const USUAL = ["overview", "timeline", "advice", "trust", "steps", "input-pipeline", "op-stats", "critical-path"];

function isShown(view: View): boolean {
  const { tool } = view;
  if (currentView.value === view) return !isKnownToLack(tool);
  if (view.groups && session.value?.tools.find(({ name }) => name === tool)?.lacks?.includes(view.groups)) return false;
  if (route.value.tool === tool) return !isKnownToLack(tool);
  if (!tools.value.some((each) => each.name === tool)) return false;
  if (tool === OVER_TIME.name && !watchedRuns.value.length) return false;
  // Where there are several hosts, their question opens on its first view, whichever answer is known first.
  if (OF_RANKS.includes(tool) && (!hasRanks() || hasHosts())) return hasHosts() && !isKnownToLack(tool);
  return USUAL.includes(tool) ? !isKnownToLack(tool) : stateOf(tool) === true || OF_THE_PAGE.includes(tool);
}

const OF_RANKS = ["distributed", "pod-viewer"];

/** Whether the session has anything to compare or to exchange: several processes, devices, or collectives. */
function hasRanks(): boolean {
  if (hasHosts()) return true;
  if (!isReady.value) return false;
  return Number(fact("devices_used") ?? 0) > 1 || Number(fact("collectives_ms") ?? 0) > 0;
}

function hasHosts(): boolean {
  return (session.value?.hosts.length ?? 0) > 1;
}

function stateOf(tool: string): boolean | null {
  return session.value?.tools.find((each) => each.name === tool)?.has_data ?? null;
}

function isKnownToLack(tool: string): boolean {
  return stateOf(tool) === false;
}

/** The views of a question: of what is not known yet the places are held, as a switch that grows moves from under the
 * pointer. */
export function heldViews(question: OpenQuestion): readonly View[] {
  const { name, views } = question;
  const mayCome = ({ tool }: View) =>
    stateOf(tool) === null && !OF_RANKS.includes(tool) && tools.value.some((each) => each.name === tool);
  const all = QUESTIONS.find((each) => each.name === name)?.views ?? views;
  return all.filter((view) => views.includes(view) || mayCome(view));
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
