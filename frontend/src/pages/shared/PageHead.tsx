/** The head of a page: the question, its views, and what belongs to the whole page. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { View } from "../../questions";
import { narrow } from "../../table/narrow";
import { currentQuestion, currentView, lackOf, linkOf, toolEntry } from "../../tools";
import { sentence } from "../../ui/basics";
import { hint } from "../../ui/hint";

interface PageHeadProps {
  tool: string;
  controls?: ComponentChildren;
  /** Whether the page has a title of its own further down. */
  isUntitled?: boolean;
}

export function PageHead({ tool, controls, isUntitled = false }: PageHeadProps) {
  const entry = toolEntry(tool);
  const question = currentQuestion.value;
  const views = (question?.views ?? []).filter((view) => !view.isFold || view === currentView.value);
  const title = views.length > 1 ? question?.label : entry?.heading; // a view alone has no switch that names it
  return (
    <header class="page-head baseline-row gap-l below-l wrap">
      {!isUntitled && <h1>{title ?? tool}</h1>}
      {views.length > 1 && <Views views={views} />}
      {!isUntitled && <p class="page-summary muted">{sentence(entry?.summary ?? "")}</p>}
      {controls && <div class="page-controls row to-end gap-m rigid">{controls}</div>}
    </header>
  );
}

/** The switch between the views of the question. */
function Views({ views }: { views: readonly View[] }) {
  const question = currentQuestion.value;
  const nav = useRef<HTMLElement>(null);
  const current = currentView.value;
  // Reading sizes makes the browser lay out the page at once, so only where the switch may be too wide.
  useLayoutEffect(() => {
    if (narrow.peek()) showCurrent(nav.current);
  }, [current]);
  const groups = [views.filter((view) => !view.isApart), views.filter((view) => view.isApart)];
  return (
    <nav class="views" ref={nav} aria-label={question?.switchLabel ?? "Show"}>
      {question?.switchLabel === "Group by" && <span class="rigid muted minor">Group by</span>}
      {groups
        .filter((group) => group.length > 0)
        .map((group) => (
          <span class="segmented" key={group[0]?.path}>
            {group.map((view) => (
              <ViewLink key={view.path} view={view} />
            ))}
          </span>
        ))}
    </nav>
  );
}

/** Where the switch is wider than the window, the view that is shown is in its middle. */
function showCurrent(nav: HTMLElement | null): void {
  const link = nav?.querySelector("[aria-current]");
  if (!nav || !link || nav.scrollWidth <= nav.clientWidth) return;
  const [outer, inner] = [nav.getBoundingClientRect(), link.getBoundingClientRect()];
  nav.scrollLeft += inner.left + inner.width / 2 - (outer.left + outer.width / 2);
}

function ViewLink({ view }: { view: View }) {
  const isCurrent = view === currentView.value;
  const lack = lackOf(view);
  const summary = lack ?? toolEntry(view.tool)?.summary ?? "";
  return (
    <a
      href={linkOf(view)}
      {...(isCurrent ? { "aria-current": "page" as const } : {})}
      {...(lack ? { "aria-disabled": true } : {})}
      {...hint(view.heading ?? view.label, summary, view.key ? `g then ${view.key}` : "")}
    >
      {view.label}
    </a>
  );
}
