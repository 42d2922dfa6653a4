/** What devices wait for while they idle, how long their queues are, and how launches behave. */
import { useMemo } from "preact/hooks";
import type { ToolAnswer } from "../../api";
import { partsOfCauses } from "../../design/causes";
import { CATEGORY_COLOUR, mix } from "../../design/colours";
import { palette } from "../../design/theme";
import { shortStream } from "../../names";
import { figuresOf, type RowOf, tableOf } from "../../sections";
import { StackedBars } from "../shared/Bars";
import { Findings } from "../shared/Findings";
import { More } from "../shared/More";
import { FiguresCard, TableCard } from "../shared/sections";
import { NOTHING, WhatToDo } from "../shared/WhatToDo";

const TEXTS = { stream: shortStream };
const MOST_BARS = 24;
const GAPS = "Longest gaps of all steps, of streams that compute first";
const BUSY = "busy";
const IDLE = "idle";

export default function Idle({ report, sections }: ToolAnswer<"idle">) {
  const streams = tableOf(sections, "rows");
  const gaps = tableOf(sections, "gaps");
  const devices = tableOf(sections, "devices");
  const several = report.hosts.length > 1;
  const isNothing = report.findings?.[0]?.startsWith(NOTHING);
  const listed = <TableCard section={gaps} id="gaps" heading={GAPS} main={!isNothing} texts={TEXTS} />;
  return (
    <>
      <Findings lines={report.findings}>
        {report.causes?.length ? (
          <Waits rows={report.causes} several={several} />
        ) : (
          <Devices rows={report.devices ?? []} several={several} />
        )}
        <WhatToDo findings={report.findings} />
      </Findings>
      {isNothing ? <More title="Longest gaps" tables={["gaps"]} children={listed} /> : listed}
      <More title="Causes, devices and streams" tables={["causes", "devices", "streams"]}>
        <TableCard section={tableOf(sections, "causes")} plain height="all" />
        <TableCard section={devices} id="devices" plain height="all" />
        <TableCard section={streams} id="streams" texts={TEXTS} />
      </More>
      <More title="Queues and launches" tables={["queues"]}>
        <TableCard
          section={tableOf(sections, "queues")}
          heading="Queues: work launched but not yet started"
          texts={TEXTS}
        />
        <FiguresCard title="Launches" section={figuresOf(sections, "launches")} />
      </More>
    </>
  );
}

/** The median step on each device: what it waits for while the device idles, and the rest. */
function Waits({ rows, several }: { rows: readonly RowOf<"idle", "causes">[]; several: boolean }) {
  const look = palette.value;
  const parts = useMemo(
    () => [
      { key: BUSY, label: "Device busy", colour: CATEGORY_COLOUR.device_compute, doc: "" },
      ...partsOfCauses(
        rows.map((row) => ({ cause: String(row.cause), meaning: String(row.meaning ?? "") })),
        look.surface,
      ),
    ],
    [rows, look],
  );
  const places = [...new Set(rows.map((row) => `${row.host} ${row.device}`))].slice(0, MOST_BARS);
  if (!places.length) return null;
  return (
    <StackedBars
      label="What the median step waits for while devices idle"
      parts={parts}
      rows={places.map((place) => {
        const own = rows.filter((row) => `${row.host} ${row.device}` === place);
        const busy = own.reduce((sum, row) => sum + Number(row.ms ?? 0) - Number(row.idle_ms ?? 0), 0);
        const idle = own.map((row) => [String(row.cause), Number(row.idle_ms ?? 0)]);
        return {
          key: place,
          label: String(own[0]?.device),
          note: several ? String(own[0]?.host) : "median step",
          parts: { [BUSY]: busy, ...Object.fromEntries(idle) },
        };
      })}
    />
  );
}

/** Without steps nothing says what a device waited for: how long it worked between its first work and its last. */
function Devices({ rows, several }: { rows: readonly RowOf<"idle", "devices">[]; several: boolean }) {
  const look = palette.value;
  return (
    <StackedBars
      label="Busy and idle time of each device"
      parts={[
        { key: BUSY, label: "Device busy", colour: CATEGORY_COLOUR.device_compute, doc: "" },
        { key: IDLE, label: "Idle", colour: mix(CATEGORY_COLOUR.other, look.surface, 0.55), doc: "" },
      ]}
      rows={rows.slice(0, MOST_BARS).map((row) => ({
        key: `${row.host} ${row.device}`,
        label: String(row.device),
        note: several ? String(row.host) : "from first to last work",
        parts: { [BUSY]: Number(row.busy_ms ?? 0), [IDLE]: Number(row.idle_ms ?? 0) },
      }))}
    />
  );
}
