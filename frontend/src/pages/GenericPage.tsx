/** The page of a tool that has no page of its own: its sections, in order. */
import type { Report, ToolAnswer } from "../api";
import { Sections } from "./sections";
import { ToolPage } from "./ToolPage";

export function GenericPage({ tool }: { tool: string }) {
  return (
    <ToolPage<Report> tool={tool}>
      {(answer: ToolAnswer) => <Sections sections={answer.sections} tool={tool} />}
    </ToolPage>
  );
}
