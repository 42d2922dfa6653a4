/** A ring of shares, largest first, small ones together. */
import type { EChartsCoreOption } from "echarts/core";
import type { Palette } from "../design/colours";
import { percent } from "../format";
import { base, popup, tooltip } from "./look";

export interface Slice {
  readonly name: string;
  readonly value: number;
  /** As the API gave it; a slice of several has none. */
  readonly percent: number | null;
  readonly colour: string;
  readonly text: string;
}

/** Slices thinner than this share would vanish between the lines that part them. */
const PARTED_FROM = 0.01;

export function ring(slices: readonly Slice[], palette: Palette): EChartsCoreOption {
  const whole = slices.reduce((sum, slice) => sum + slice.value, 0);
  const border = (slice: Slice) => (slice.value < PARTED_FROM * whole ? { borderWidth: 0 } : {});
  return {
    ...base(palette),
    tooltip: {
      ...tooltip(palette),
      trigger: "item",
      formatter: (item: { dataIndex: number; percent: number }) => {
        const slice = slices[item.dataIndex];
        return slice
          ? popup(slice.name, [
              { colour: slice.colour, name: percent(slice.percent ?? item.percent), value: slice.text },
            ])
          : popup("", []);
      },
    },
    series: [
      {
        type: "pie",
        radius: ["56%", "92%"],
        center: ["50%", "50%"],
        startAngle: 90,
        cursor: "pointer",
        avoidLabelOverlap: false,
        label: { show: false },
        emphasis: { scale: true, scaleSize: 3 },
        itemStyle: { borderColor: palette.surface, borderWidth: 1.5 },
        data: slices.map((slice) => ({
          name: slice.name,
          value: slice.value,
          itemStyle: { color: slice.colour, ...border(slice) },
        })),
      },
    ],
  };
}
