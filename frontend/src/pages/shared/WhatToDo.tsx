/** What the Summary advises first, below what a page of one part found: one story on all pages. */
import { type ToolAnswer, useResource } from "../../api";
import { linkTo } from "../../router";
import { answerAddress } from "../../session";
import type { OverviewReport } from "./reports";

export function WhatToDo() {
  const found = useResource<ToolAnswer<"overview", OverviewReport>>(answerAddress("overview"));
  const first = found.state === "ready" ? found.data.report.advice[0] : null;
  return (
    <a class="more" href={linkTo("overview")}>
      {first ? `What to do first: ${first.title.charAt(0).toLowerCase()}${first.title.slice(1)}` : "What to do first"}
    </a>
  );
}
