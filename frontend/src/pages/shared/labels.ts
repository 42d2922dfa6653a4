/** Short names of figures that several pages show. */
export const LAUNCH_LABELS: Readonly<Record<string, string>> = {
  short_kernels_percent: "Short kernels",
  short_kernels_time_percent: "Their time",
  cheaper_than_launch_percent: "Shorter than a launch",
  launch_call_us: "Mean launch call",
  launch_delay_us: "Mean launch delay",
  mean_gap_us: "Mean gap",
  time_in_gaps_percent: "Time in gaps",
  gaps_late_percent: "Gaps by late launches",
  long_delays_percent: "Long delays",
};
