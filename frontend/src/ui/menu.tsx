/**
 * A button that opens a small pane below itself.  Escape, a click elsewhere and leaving by Tab close it; the arrows go
 * from one thing in it to the next.
 */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

interface MenuProps {
  /** What the button does; what it shows follows in its name. */
  label: string;
  button: ComponentChildren;
  /** Whether what it shows is text of its own, such as the name of what is chosen. */
  isTelling?: boolean;
  buttonClass?: string;
  align?: "left" | "right";
  /** Makes what is in the pane; called only while it is open. */
  children: (close: () => void) => ComponentChildren;
}

export function Menu(props: MenuProps) {
  const { label, button, isTelling = false, buttonClass = "button quiet", align = "right", children } = props;
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  const pane = useRef<HTMLDivElement>(null);
  const close = () => {
    setOpen(false);
    opener.current?.focus();
  };
  useLayoutEffect(() => {
    if (!open) return undefined;
    if (pane.current) keepInside(pane.current);
    const outside = (event: Event) => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("mousedown", outside);
    document.addEventListener("focusin", outside);
    const leave = () => setOpen(false);
    window.addEventListener("hashchange", leave); // another page is shown
    return () => {
      window.removeEventListener("hashchange", leave);
      document.removeEventListener("mousedown", outside);
      document.removeEventListener("focusin", outside);
    };
  }, [open]);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only forwards the keys of the button and the pane
    <div
      class="menu"
      ref={box}
      onKeyDown={(event) => {
        if (!open) return;
        if (event.key === "Escape") {
          event.stopPropagation();
          close();
        } else if (pane.current && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
          event.preventDefault();
          step(pane.current, event.key === "ArrowDown" ? 1 : -1);
        }
      }}
    >
      <button
        ref={opener}
        type="button"
        class={buttonClass}
        {...(isTelling ? {} : { "aria-label": label })}
        aria-haspopup="true"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        {isTelling && <span class="offscreen">{label}: </span>}
        {button}
      </button>
      {open && (
        <div ref={pane} class={`menu-pane ${align}`}>
          {children(close)}
        </div>
      )}
    </div>
  );
}

/** From what has the focus to the next or the previous that can have it; from the button to the first.  Buttons in a
 * search box are passed over: below it is what was found. */
function step(pane: HTMLElement, by: 1 | -1): void {
  const all = [...pane.querySelectorAll<HTMLElement>("input, :not(.filter) > button:not(:disabled), a[href], summary")];
  const at = all.indexOf(document.activeElement as HTMLElement);
  all[Math.max(0, Math.min(all.length - 1, at + by))]?.focus();
}

const EDGE = 8;

/** Moves a pane that would reach beyond the window back into it. */
function keepInside(pane: HTMLElement): void {
  const box = pane.getBoundingClientRect();
  const shift = Math.max(EDGE - box.left, Math.min(0, window.innerWidth - EDGE - box.right));
  if (shift) pane.style.marginLeft = `${shift}px`;
}
