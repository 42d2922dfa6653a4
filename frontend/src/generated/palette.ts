/** Made by scripts/gen_types.py; change the declarations in Python and run `make format`. */
export const CATEGORY_COLOUR = {
  compilation: "#e5af02",
  output: "#677303",
  input: "#df8543",
  kernel_launch: "#731cad",
  host_compute: "#67bfb4",
  device_collectives: "#ad4896",
  device_to_device: "#8f3150",
  device_compute: "#2f65ed",
  other: "#908c85",
} as const;
export const CATEGORY_LABEL = {
  compilation: "Compilation",
  output: "Output",
  input: "Input",
  kernel_launch: "Kernel launch",
  host_compute: "Host compute",
  device_collectives: "Collectives",
  device_to_device: "Device to device",
  device_compute: "Device compute",
  other: "Other",
} as const;
export const KINDS = {
  host_compute: "op executor function_run eager_execute traced_function backward",
  input: "input_wait iterator input_handover input_callback infeed",
  device_to_device:
    "copy_host_to_device_call copy_host_to_device copy_device_to_host copy_device_to_device copy_peer copy_host_to_host copy_other memset",
  kernel_launch: "runtime_call",
  compilation: "compile",
  output: "checkpoint outfeed sync",
  device_collectives: "collective_call collective",
  device_compute: "kernel device_op graph_launch module",
  other: "overhead allocation deallocation",
} as const;
export const MEMORY_COLOUR = {
  parameters: "#2f65ed",
  gradients: "#ad4896",
  optimizer_state: "#e5af02",
  activations: "#67bfb4",
  input_batches: "#df8543",
  temporary: "#731cad",
  compiled_programs: "#8f3150",
  kept_over_steps: "#677303",
} as const;
export const CAUSE_COLOUR = {
  input: { colour: "#df8543", isWait: false },
  transfer: { colour: "#8f3150", isWait: true },
  python: { colour: "#c084fc", isWait: false },
  host_compute: { colour: "#67bfb4", isWait: false },
  launch: { colour: "#731cad", isWait: false },
  device_compute: { colour: "#2f65ed", isWait: false },
  device_gap: { colour: "#2f65ed", isWait: true },
  copy: { colour: "#8f3150", isWait: false },
  communication: { colour: "#ad4896", isWait: false },
  compile: { colour: "#e5af02", isWait: false },
  sync: { colour: "#677303", isWait: false },
  checkpoint: { colour: "#677303", isWait: true },
  contention: { colour: "#185400", isWait: false },
  unknown: { colour: "#908c85", isWait: true },
} as const;
