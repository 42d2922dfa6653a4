/** What the Summary advises first, below what a page of one part found: one story on all pages. */
import { type ToolAnswer, useResource } from "../../api";
import { linkTo } from "../../router";
import { answerAddress } from "../../session";
import { Code, uncapital } from "../../ui/basics";
import type { OverviewReport } from "./reports";

/** How the first finding of a page begins whose part costs hardly anything: the advice is about something else. */
export const NOTHING = "nothing to gain";

export function WhatToDo({ findings }: { findings?: readonly string[] | undefined }) {
  const found = useResource<ToolAnswer<"overview", OverviewReport>>(answerAddress("overview"));
  if (findings?.[0]?.startsWith(NOTHING)) return null;
  const first = found.state === "ready" ? found.data.report.advice[0] : null;
  return (
    <a class="more" href={linkTo("overview")}>
      <Code
        text={first?.class === "none" ? first.title : `What to do first${first ? `: ${uncapital(first.title)}` : ""}`}
      />
    </a>
  );
}
