/** Whether the recording can be trusted: each check with its tick, what was found where one is missing, repairs. */
import type { ToolAnswer } from "../../api";
import { tableOf } from "../../sections";
import { Card, sentence } from "../../ui/basics";
import { Icon } from "../../ui/icons";
import { Findings } from "../shared/Findings";
import { TableCard } from "../shared/sections";
import "./trust.css";

export default function Trust({ report, sections }: ToolAnswer<"trust">) {
  const checks = report.checks ?? [];
  const worst = report.rows?.[0];
  const passed = checks.filter((row) => row.holds === "yes").length;
  return (
    <>
      {worst && <Findings lines={[String(worst.found)]} />}
      <Card title={`${passed} of ${checks.length} checks hold`}>
        <ul class="ticks">
          {checks.map((row) => (
            <li key={row.rule} class={row.holds === "yes" ? "" : "fails"}>
              <Icon name={row.holds === "yes" ? "check" : "warning"} size={16} />
              <span>
                <span class="offscreen">{row.holds === "yes" ? "holds: " : "does not hold: "}</span>
                {sentence(String(row.rule))}
                {row.holds === "no" && report.hosts.length > 1 && (
                  <span class="muted">{` (${row.hosts} of ${report.hosts.length} hosts)`}</span>
                )}
              </span>
            </li>
          ))}
        </ul>
      </Card>
      {(report.rows ?? []).length > 0 && <TableCard section={tableOf(sections, "rows")} main />}
      {(report.repairs ?? []).length > 0 && <TableCard section={tableOf(sections, "repairs")} />}
    </>
  );
}
