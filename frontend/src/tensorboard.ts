/**
 * In TensorBoard the page is a frame, and the address bar is TensorBoard's: `#stepscope`.  What the page shows is kept
 * there too, as `#stepscope&view=...`, so that a link can be shared and a reload shows the same.
 */
const KEY = "view";
const PLUGIN = "stepscope";

/** The address of the page that TensorBoard's own holds; empty without one. */
export function viewIn(outer: string): string {
  for (const part of outer.replace(/^#/, "").split("&")) {
    const [key, value] = part.split("=");
    if (key === KEY && value) return decodeURIComponent(value);
  }
  return "";
}

/** TensorBoard's address with that of the page in it; another tab's address stays as it is. */
export function withView(outer: string, view: string): string {
  const parts = outer.replace(/^#/, "").split("&");
  if (parts[0] !== PLUGIN) return outer;
  const others = parts.filter((part) => !part.startsWith(`${KEY}=`));
  return `#${[...others, `${KEY}=${encodeURIComponent(view)}`].join("&")}`;
}

/** The view to start with: the page's own address, else the one in TensorBoard's. */
export function firstView(own: string): string {
  const outer = board();
  if (own.length > 1 || !outer) return own;
  const view = viewIn(outer.location.hash);
  if (view) window.history.replaceState(null, "", view);
  return view;
}

/** Keeps the page's address in TensorBoard's. */
export function keepView(view: string): void {
  const outer = board();
  if (outer) outer.history.replaceState(outer.history.state, "", withView(outer.location.hash, view));
}

/** The address that shows this view to others: in TensorBoard its own, which holds the view. */
export function addressToShare(): string {
  return (board() ?? window).location.href;
}

/** TensorBoard's window; null where the page stands alone, or another site holds it. */
function board(): Window | null {
  try {
    const inside = window.parent !== window && window.location.pathname.includes(`/data/plugin/${PLUGIN}/`);
    return inside && window.parent.location.origin === window.location.origin ? window.parent : null;
  } catch {
    return null;
  }
}
