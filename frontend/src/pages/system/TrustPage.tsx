/** Whether the recording can be trusted: each check with its tick, what was found where one is missing, repairs. */
import type { ToolAnswer } from "../../api";
import { tableOf } from "../../sections";
import { Card, sentence } from "../../ui/basics";
import { Icon } from "../../ui/icons";
import { Findings } from "../shared/Findings";
import { TableCard } from "../shared/sections";
import "./trust.css";

/** How a check is said, drawn, and styled, by whether it holds. */
const STATES: Readonly<Record<string, readonly [string, string, string]>> = {
  yes: ["holds", "check", ""],
  unknown: ["not known", "help", ""],
};
const FAILS: readonly [string, string, string] = ["does not hold", "warning", "fails"];

export default function Trust({ report, sections }: ToolAnswer<"trust">) {
  const checks = report.checks ?? [];
  const worst = report.rows?.[0];
  const passed = checks.filter((row) => row.holds === "yes").length;
  return (
    <>
      {worst && <Findings lines={[String(worst.found)]} />}
      <Card title={`${passed} of ${checks.length} checks hold`}>
        <ul class="ticks">
          {checks.map((row) => {
            const [state, icon, look] = STATES[String(row.holds)] ?? FAILS;
            return (
              <li key={row.rule} class={look}>
                <Icon name={icon} size={16} />
                <span>
                  <span class="offscreen">{`${state}: `}</span>
                  {sentence(String(row.rule))}
                  {row.holds === "unknown" && <span class="muted"> (not known: nothing recorded tells)</span>}
                  {row.holds === "no" && report.hosts.length > 1 && (
                    <span class="muted">{` (${row.hosts} of ${report.hosts.length} hosts)`}</span>
                  )}
                </span>
              </li>
            );
          })}
        </ul>
      </Card>
      {(report.rows ?? []).length > 0 && <TableCard section={tableOf(sections, "rows")} main />}
      {(report.repairs ?? []).length > 0 && <TableCard section={tableOf(sections, "repairs")} />}
    </>
  );
}
