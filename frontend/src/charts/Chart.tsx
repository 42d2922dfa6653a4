/** A chart: ECharts in a box that loads it, follows its size and the theme, and says in words what it shows. */
import type { ECharts, EChartsCoreOption } from "echarts/core";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { theme } from "../design/theme";
import { Loading } from "../ui/basics";

export interface ChartProps {
  /** What the chart shows, for users who cannot see it. */
  label: string;
  option: EChartsCoreOption;
  height: number;
  /** The number of visible marks, for tests and other programs. */
  marks: number;
  onPick?: (picked: { dataIndex: number; seriesIndex: number; name: string }) => void;
  /** A click anywhere over the axes: the place on the horizontal axis. */
  onPoint?: (x: number) => void;
  onZoom?: (start: number, end: number) => void;
}

type Library = typeof import("./echarts");
let library: Promise<Library> | null = null;

export function loadCharts(): Promise<Library> {
  library ??= import("./echarts");
  return library;
}

export function Chart({ label, option, height, marks, onPick, onPoint, onZoom }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<ECharts | null>(null);
  const [ready, setReady] = useState(false);
  const handlers = useRef({ onPick, onPoint, onZoom });
  handlers.current = { onPick, onPoint, onZoom };
  const look = theme.value;

  useLayoutEffect(() => {
    let gone = false;
    let watch: ResizeObserver | null = null;
    void loadCharts().then(({ init }) => {
      if (gone || !box.current) return;
      const made = init(box.current, null, { renderer: "canvas" });
      chart.current = made;
      made.on("click", (event) =>
        handlers.current.onPick?.({
          dataIndex: event.dataIndex,
          seriesIndex: event.seriesIndex ?? 0,
          name: event.name,
        }),
      );
      made.getZr().on("click", ({ offsetX, offsetY }) => {
        const at = made.containPixel("grid", [offsetX, offsetY])
          ? made.convertFromPixel({ gridIndex: 0 }, [offsetX, offsetY])
          : null;
        if (Array.isArray(at) && typeof at[0] === "number") handlers.current.onPoint?.(at[0]);
      });
      made.on("datazoom", () => {
        const zoom = (made.getOption().dataZoom as { startValue: number; endValue: number }[] | undefined)?.[0];
        if (zoom) handlers.current.onZoom?.(zoom.startValue, zoom.endValue);
      });
      watch = new ResizeObserver(() => made.resize());
      watch.observe(box.current);
      setReady(true);
    });
    return () => {
      gone = true;
      watch?.disconnect();
      chart.current?.dispose();
      chart.current = null;
    };
  }, []);

  useLayoutEffect(() => {
    chart.current?.setOption(option, { notMerge: true, lazyUpdate: false });
  }, [ready, option, look]);

  return (
    <div class="chart" role="img" aria-label={label} data-marks={marks} data-drawn={ready}>
      {!ready && <Loading what="Drawing" />}
      <div ref={box} class="chart-box" style={{ minHeight: `${height}px` }} />
    </div>
  );
}
