/** Where the host waits for a device, by line of the program. */
import type { ToolAnswer } from "../../api";
import { tableOf } from "../../sections";
import { Findings } from "../shared/Findings";
import { TableCard } from "../shared/sections";
import { WhatToDo } from "../shared/WhatToDo";

export default function Syncs({ report, sections }: ToolAnswer<"syncs">) {
  const table = tableOf(sections, "rows");
  const fields = table.fields.filter(({ role }) => report.hosts.length > 1 || role !== "host");
  return (
    <>
      <Findings lines={report.findings}>
        <WhatToDo findings={report.findings} />
      </Findings>
      <TableCard section={{ ...table, fields }} id="syncs" main />
    </>
  );
}
