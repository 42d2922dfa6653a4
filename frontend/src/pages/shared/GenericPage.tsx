/** The page of a tool that has no page of its own: its sections, in order. */
import type { ToolName } from "../../sections";
import { Sections } from "./sections";
import { ToolPage } from "./ToolPage";

export function GenericPage({ tool }: { tool: string }) {
  return <ToolPage tool={tool as ToolName}>{({ sections }) => <Sections sections={sections} tool={tool} />}</ToolPage>;
}
