/** What a page has beside its sentence, chart and table: closed until it is wanted, and only then drawn. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { route } from "../../router";

interface MoreProps {
  title: string;
  note?: string;
  /** The tables in it: an address that filters or sorts one of them opens it. */
  tables?: readonly string[];
  children: ComponentChildren;
}

export function More({ title, note = "", tables = [], children }: MoreProps) {
  const [isOpen, setIsOpen] = useState(() => isWanted(tables));
  return (
    <details class="more-card" open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        <span class="strong">{title}</span>
        {note && <span class="card-note muted minor shrinks">{note}</span>}
      </summary>
      {isOpen && <div class="stack">{children}</div>}
    </details>
  );
}

function isWanted(tables: readonly string[]): boolean {
  const names = Object.keys(route.peek().params);
  return tables.some((table) => names.some((name) => name.startsWith(`${table}.`)));
}
