/**
 * A dialog over the page, and a pane at its side.  Both take the focus and give it back; Escape closes them.
 *
 * They do so in layout effects: other effects are cleaned up only after the next picture, when the element that had the
 * focus is long gone and keys would go to the document.
 */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { IconButton } from "./controls";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  class?: string;
}

export function Dialog({ title, onClose, children, class: name = "" }: DialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const dialog = box.current;
    dialog?.showModal();
    window.addEventListener("hashchange", onClose); // another page is shown
    return () => {
      window.removeEventListener("hashchange", onClose);
      dialog?.close();
    };
  }, []);
  return (
    <dialog
      ref={box}
      class={`dialog ${name}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => event.target === box.current && onClose()}
    >
      <div class="dialog-box">
        <DialogHead title={title} onClose={onClose} />
        {children}
      </div>
    </dialog>
  );
}

export function Drawer({ title, onClose, children }: DialogProps) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current?.focus();
    const leave = (event: Event) => event.target instanceof Element && event.target.closest(".topbar") && onClose();
    document.addEventListener("mousedown", leave); // menus of the bar open below it
    return () => {
      document.removeEventListener("mousedown", leave);
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <div
      ref={box}
      class="drawer"
      role="dialog"
      aria-label={title}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        onClose();
      }}
    >
      <DialogHead title={title} onClose={onClose} />
      {children}
    </div>
  );
}

function DialogHead({ title, onClose }: Pick<DialogProps, "title" | "onClose">) {
  return (
    <header class="row spread below-l">
      <h2>{title}</h2>
      <IconButton icon="close" size={20} isLarge label="Close" onClick={onClose} />
    </header>
  );
}
