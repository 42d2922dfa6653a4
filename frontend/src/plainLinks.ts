/** For what is sent or framed without the rest of the page: its links lead nowhere there, so they are text. */
import { options } from "preact";

export function makeLinksText(): void {
  const before = options.vnode;
  options.vnode = (node) => {
    const props = node.props as { href?: unknown };
    if (node.type === "a" && typeof props.href === "string" && props.href.startsWith("#")) props.href = undefined;
    before?.(node);
  };
}
