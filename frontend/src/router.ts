/**
 * The address holds the whole state of the page, after the `#`: `#/QUESTION/VIEW?session=ID&host=H&steps=3-9&...`.
 *
 * A link therefore shows the same thing to whoever opens it, and the browser's Back works.  Nothing else is state,
 * except what belongs to the reader: theme, width of the rail, last settings of the capture dialog.
 */
import { signal } from "@preact/signals";
import { addressOfTool, placeAt } from "./questions";
import { firstView, keepView } from "./tensorboard";

export interface Route {
  readonly tool: string;
  readonly params: Readonly<Record<string, string>>;
}

/** Parameters that stay when the tool changes; all others belong to one page. */
export const SHARED = ["session", "host", "steps", "with", "withSteps"] as const;

export const START = "overview";

export function parseHash(hash: string): Route {
  const text = hash.replace(/^#?\/?/, "");
  const cut = text.indexOf("?");
  const path = cut < 0 ? text : text.slice(0, cut);
  const params: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [key, value] of new URLSearchParams(cut < 0 ? "" : text.slice(cut + 1))) params[key] = value;
  const view = placeAt(path)?.view;
  if (view?.by) params.by = view.by;
  return { tool: view?.tool ?? (decode(path).replace(/^compare$/, START) || START), params };
}

export function formatHash(route: Route): string {
  const query = new URLSearchParams();
  const rank = (key: string) => (SHARED as readonly string[]).indexOf(key) >>> 0; // the shared ones first
  const keys = Object.keys(route.params).sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  const { address, holdsBy } = addressOfTool(route.tool, route.params.by);
  for (const key of keys)
    if (route.params[key] && !(holdsBy && key === "by")) query.set(key, route.params[key] as string);
  const text = query.toString();
  return `#/${address}${text ? `?${text}` : ""}`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A frame of a notebook has no address of its own: what it shows is state of the frame alone. */
const hasAddress = typeof window !== "undefined" && window.location.protocol !== "about:";

export const route = signal<Route>(parseHash(hasAddress ? firstView(window.location.hash) : ""));

if (hasAddress) {
  const read = () => {
    route.value = parseHash(window.location.hash);
    useNewAddress();
    keepView(window.location.hash);
  };
  useNewAddress();
  window.addEventListener("hashchange", read);
  window.addEventListener("popstate", read);
}

/** An address of an earlier version becomes the one of today. */
function useNewAddress(): void {
  const { hash } = window.location;
  const today = formatHash(route.peek());
  if (hash.length > 2 && hash.split("?")[0] !== today.split("?")[0]) window.history.replaceState(null, "", today);
}

export type Params = Readonly<Record<string, string | null>>;

/** A route with some parameters changed; null takes one away. */
export function withParams(from: Route, changes: Params): Route {
  const params: Record<string, string> = { ...from.params };
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") delete params[key];
    else params[key] = value;
  }
  return { tool: from.tool, params };
}

/** The route of another tool: the shared parameters stay, the page's own go. */
export function toTool(from: Route, tool: string, changes: Params = {}): Route {
  const params: Record<string, string> = {};
  for (const key of SHARED) if (from.params[key]) params[key] = from.params[key] as string;
  return withParams({ tool, params }, changes);
}

/** The address of another tool, for a link. */
export function linkTo(tool: string, changes: Params = {}): string {
  return formatHash(toTool(route.value, tool, changes));
}

/**
 * Goes to a route.  What the reader would undo with Back (another tool, session, host) makes a history entry; what
 * merely follows the hand (a filter being typed, a slider) replaces the present one.
 */
export function go(next: Route, how: "push" | "replace" = "push"): void {
  const hash = formatHash(next);
  if (hash === formatHash(route.value)) return;
  if (hasAddress && how === "push") window.history.pushState(null, "", hash);
  else if (hasAddress) window.history.replaceState(null, "", hash);
  route.value = next;
  if (hasAddress) keepView(hash);
}

export function setParams(changes: Params, how: "push" | "replace" = "replace"): void {
  go(withParams(route.value, changes), how);
}
