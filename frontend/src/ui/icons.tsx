/** The icons: one stroke, 20 x 20, in the colour of the text. */
const PATHS: Readonly<Record<string, string>> = {
  summary: "M3 16.5h14M5 13V9M10 13V4M15 13V7",
  input: "M3 4h14l-5.5 6.5V16l-3-1.5v-4z",
  compute: "M6 6h8v8H6zM8.5 3v3M11.5 3v3M8.5 14v3M11.5 14v3M3 8.5h3M3 11.5h3M14 8.5h3M14 11.5h3",
  waiting: "M6 3h8M6 17h8M7 3v3.5L10 10l3-3.5V3M7 17v-3.5L10 10l3 3.5V17",
  ranks: "M3 4h14v4.5H3zM3 11.5h14V16H3zM6 6.2h.01M6 13.8h.01",
  memory: "M3 6h14v8H3zM6.5 9v2M10 9v2M13.5 9v2M6 14v2.5M14 14v2.5",
  sessions: "M6 6.5h11v10H6zM3 13.5v-10h11M9 10h5M9 13h3",
  overview: "M3 16.5h14M5 13V9M10 13V4M15 13V7",
  timeline: "M3 5h7M7 10h8M4 15h5M12 15h5M10 5h0",
  steps: "M3 16V9h3.5v7M8.2 16V4h3.6v12M13.5 16v-5H17v5M2 16.5h16",
  "input-pipeline": "M3 4h14l-5.5 6.5V16l-3-1.5v-4z",
  "op-stats": "M10 3v7l5 5M10 3a7 7 0 1 0 7 7 7 7 0 0 0-7-7z",
  "kernel-stats": "M6 6h8v8H6zM8.5 3v3M11.5 3v3M8.5 14v3M11.5 14v3M3 8.5h3M3 11.5h3M14 8.5h3M14 11.5h3",
  "memory-profile": "M3 6h14v8H3zM6.5 9v2M10 9v2M13.5 9v2M6 14v2.5M14 14v2.5",
  "pod-viewer": "M3 4h14v4.5H3zM3 11.5h14V16H3zM6 6.2h.01M6 13.8h.01",
  "tf-data": "M4 4h4v4H4zM12 4h4v4h-4zM8 14h4v3H8zM6 8v2.5h8V8M10 10.5V14",
  distributed:
    "M10 3.5v4M10 7.5 5 12.5M10 7.5l5 5M10 3.5h.01" +
    "M5 14a1.7 1.7 0 1 0 .01 0M15 14a1.7 1.7 0 1 0 .01 0M10 5.2a1.7 1.7 0 1 0-.01 0",
  modules: "M10 3 17 6.5 10 10 3 6.5zM3 10l7 3.5 7-3.5M3 13.5 10 17l7-3.5",
  advice: "M7.5 14.5h5M8.5 17h3M10 3a5 5 0 0 0-2.7 9.2v2.3h5.4v-2.3A5 5 0 0 0 10 3z",
  idle: "M10 3a7 7 0 1 0 .01 0M8 7.5v5M12 7.5v5",
  "critical-path": "M3 5h4M7 5l4 10M11 15h6M3 15h3M12 5h5",
  "op-shapes": "M3 4h6v6H3zM12 12.5h5v4h-5zM12 4h5v5M3 13v3.5h5",
  syncs: "M4 7.5h10L11 4.5M16 12.5H6l3 3",
  sequences: "M2.5 7.5h4v5h-4zM8 7.5h4v5H8zM13.5 7.5h4v5h-4zM6.5 10H8M12 10h1.5",
  "graph-viewer": "M7 3h6v4H7zM3 13h6v4H3zM11 13h6v4h-6zM9 7 6.5 13M11 7l3 6",
  roofline: "M3 16.5h14M3 15 9.5 6H17M7 13.5h.01M11 11h.01M14 8.7h.01",
  "memory-viewer": "M3 16.5h14M4 13.5h3v-4h3V5h3v5h3v3.5",
  "hlo-stats": "M4 4h12M4 8h9M4 12h6M4 16h3",
  "op-profile": "M4 4h12v3H4zM6 9.5h10v3H6zM8 15h8v3H8z",
  inference: "M3 10h4M13 10h4M7 6h6v8H7zM10 3v3M10 14v3",
  sql:
    "M10 3c3.5 0 6 1 6 2.3S13.5 7.6 10 7.6 4 6.6 4 5.3 6.5 3 10 3z" +
    "M4 5.3v9.4C4 16 6.5 17 10 17s6-1 6-2.3V5.3M4 10c0 1.3 2.5 2.3 6 2.3s6-1 6-2.3",
  system: "M2.5 10.5h3l2-5 3.5 9.5 2.5-6.5 1.2 2h2.8",
  link:
    "M8.5 11.5a3 3 0 0 0 4.3 0l2.7-2.7a3 3 0 0 0-4.3-4.3L10 5.7" +
    "M11.5 8.5a3 3 0 0 0-4.3 0l-2.7 2.7a3 3 0 0 0 4.3 4.3L10 14.3",
  star: "M10 2.8l2.2 4.6 5 .7-3.6 3.5.9 5-4.5-2.4-4.5 2.4.9-5L2.8 8.1l5-.7z",
  edit: "M4 16l1-4 8.5-8.5 3 3L8 15zM12 5l3 3",
  compare: "M5 4h4v12H5zM11 8h4v8h-4z",
  tool: "M4 4h12v12H4zM4 8h12M8 8v8",
  capture: "M10 4a6 6 0 1 0 .01 0M10 8a2 2 0 1 0 .01 0",
  search: "M9 3.5a5.5 5.5 0 1 0 .01 0M13 13l4 4",
  sun:
    "M10 6.5a3.5 3.5 0 1 0 .01 0M10 2v1.5M10 16.5V18M2 10h1.5M16.5 10H18" +
    "M4.5 4.5l1 1M14.5 14.5l1 1M4.5 15.5l1-1M14.5 5.5l1-1",
  moon: "M16.5 11.8A7 7 0 1 1 8.2 3.5a5.5 5.5 0 0 0 8.3 8.3z",
  help: "M7.5 7.7a2.5 2.5 0 1 1 3.6 2.3c-.8.4-1.1.9-1.1 1.8M10 14.5v.01M10 2.5a7.5 7.5 0 1 0 .01 0",
  close: "M5 5l10 10M15 5 5 15",
  down: "M5 8l5 5 5-5",
  left: "M12 5l-5 5 5 5",
  right: "M8 5l5 5-5 5",
  menu: "M3 5.5h14M3 10h14M3 14.5h14",
  csv: "M10 3v9M6.5 8.5 10 12l3.5-3.5M4 16h12",
  copy: "M7 7h9v9H7zM4 13V4h9",
  columns: "M3.5 4h13v12h-13zM8 4v12M12.5 4v12",
  warning: "M10 3 18 16.5H2zM10 8v4M10 14.3v.01",
  arrow: "M4 10h12M11.5 5.5 16 10l-4.5 4.5",
  check: "M4 10.5 8 14.5 16 5.5",
  host: "M3 4h14v4.5H3zM3 11.5h14V16H3z",
  clock: "M10 3a7 7 0 1 0 .01 0M10 6v4.2l3 1.8",
  reload: "M16 10a6 6 0 1 1-2-4.5M16 3v3.5h-3.5",
};

export function Icon({ name, size = 20 }: { name: string; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={PATHS[name] ?? (PATHS.tool as string)} />
    </svg>
  );
}
