/** Rows with a start and a length on one axis of time, a lane for each stream, thread or device. */
import { CATEGORY_COLOUR } from "../../design/colours";
import { duration } from "../../format";
import { intervalInTimeline } from "../../links";
import { hint } from "../../ui/hint";
import { lanesOf, type Stretch } from "./result";

const PS_PER_MS = 1e9;
const LEAST = 0.15; // percent of the width, so that short ones can be seen

export function Track({ stretches }: { stretches: readonly Stretch[] }) {
  const begin = Math.min(...stretches.map((each) => each.begin));
  const end = Math.max(...stretches.map((each) => each.end), begin + 1);
  const lanes = lanesOf(stretches);
  const place = (ps: number) => (100 * (ps - begin)) / (end - begin);
  return (
    <div class="sql-track" data-marks={stretches.length}>
      {lanes.map(({ label, parts }) => (
        <div key={label} class="sql-lane">
          {lanes.length > 1 && <span class="muted minor">{label}</span>}
          <svg
            viewBox="0 0 100 1"
            preserveAspectRatio="none"
            role="group"
            aria-label={`${parts.length} stretches of time`}
          >
            {parts.map((each) => (
              <a key={each.row} href={timelineOf(each)}>
                <rect
                  x={place(each.begin)}
                  y={0}
                  width={Math.max(place(each.end) - place(each.begin), LEAST)}
                  height={1}
                  fill={CATEGORY_COLOUR.device_compute}
                  {...hint(each.name || label, "", duration((each.end - each.begin) / PS_PER_MS))}
                />
              </a>
            ))}
          </svg>
        </div>
      ))}
      <div class="flex spread minor muted">
        <span>{duration(begin / PS_PER_MS)}</span>
        <span>{duration(end / PS_PER_MS)}</span>
      </div>
    </div>
  );
}

function timelineOf({ begin, end, host }: Stretch): string {
  const around = Math.max(end - begin, 1) * 2;
  return intervalInTimeline(Math.max(0, begin - around) / PS_PER_MS, (end + around) / PS_PER_MS, host);
}
