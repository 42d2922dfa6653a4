/** The settings of a capture as text fields, and the request that they make. */
export interface CaptureForm {
  readonly addresses: string;
  readonly duration_ms: string;
  readonly delay_ms: string;
  readonly retries: string;
  readonly host_tracer_level: string;
  readonly device_tracer_level: string;
  readonly python_tracer_level: string;
}

export interface CaptureRequest {
  readonly addresses: readonly string[];
  readonly duration_ms: number;
  /** null lets the client choose when all workers start. */
  readonly delay_ms: number | null;
  readonly retries: number;
  readonly host_tracer_level: number;
  readonly device_tracer_level: number;
  readonly python_tracer_level: number;
  /** Left out: the server's own, if it has one. */
  readonly token?: string;
}

export const USUAL: CaptureForm = {
  addresses: "",
  duration_ms: "2000",
  delay_ms: "",
  retries: "2",
  host_tracer_level: "2",
  device_tracer_level: "1",
  python_tracer_level: "0",
};

const LONGEST_MS = 600_000;

export type FormResult =
  | { readonly ok: true; readonly request: CaptureRequest }
  | { readonly ok: false; readonly field: keyof CaptureForm; readonly error: string };

/** The last used settings, as far as they are still valid. */
export function checked(value: unknown): CaptureForm {
  const stored = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
  const form: Record<string, string> = { ...USUAL };
  for (const key of Object.keys(USUAL)) if (typeof stored[key] === "string") form[key] = stored[key] as string;
  return form as unknown as CaptureForm;
}

export function fromForm(form: CaptureForm): FormResult {
  const addresses = [...new Set(form.addresses.split(/[\s,]+/).filter(Boolean))];
  if (!addresses.length)
    return { ok: false, field: "addresses", error: "Enter at least one address, such as localhost:6009." };
  const odd = addresses.find((each) => !isAddress(each));
  if (odd) {
    const error = `“${odd}” is not an address: write HOST:PORT, such as localhost:6009.`;
    return { ok: false, field: "addresses", error };
  }
  const duration = whole(form.duration_ms, 1, LONGEST_MS);
  if (duration === null)
    return {
      ok: false,
      field: "duration_ms",
      error: "The duration must be a whole number of milliseconds from 1 to 600,000.",
    };
  const delay = form.delay_ms.trim() === "" ? null : whole(form.delay_ms, 0, LONGEST_MS);
  if (delay === null && form.delay_ms.trim() !== "")
    return {
      ok: false,
      field: "delay_ms",
      error: "The delay must be a whole number of milliseconds from 0 to 600,000.",
    };
  const retries = whole(form.retries, 0, 20);
  if (retries === null) return { ok: false, field: "retries", error: "Retries must be a whole number from 0 to 20." };
  return {
    ok: true,
    request: {
      addresses,
      duration_ms: duration,
      delay_ms: delay,
      retries,
      host_tracer_level: Number(form.host_tracer_level),
      device_tracer_level: Number(form.device_tracer_level),
      python_tracer_level: Number(form.python_tracer_level),
    },
  };
}

/** The request with the token that the jobs ask for, if one was entered. */
export function withToken(request: CaptureRequest, token: string): CaptureRequest {
  return token.trim() ? { ...request, token: token.trim() } : request;
}

function isAddress(text: string): boolean {
  const found = /^(?:grpc:\/\/|http:\/\/)?(?:\[[0-9a-fA-F:]+\]|[\w.-]+):(\d{1,5})$/.exec(text);
  return found !== null && Number(found[1]) >= 1 && Number(found[1]) <= 65535;
}

function whole(text: string, least: number, most: number): number | null {
  const value = /^\s*\d+\s*$/.test(text) ? Number(text) : Number.NaN;
  return value >= least && value <= most ? value : null;
}

/** Whether the error only repeats what the failed workers report. */
export function isToldByWorkers(
  workers: readonly { readonly state: string; readonly message: string }[],
  failure: string,
): boolean {
  const said = workers
    .filter((worker) => worker.state === "failed")
    .map((worker) => worker.message.replace(/ \(attempt \d+\)$/, ""));
  return said.length > 0 && said.every((message) => message !== "" && failure.includes(message));
}
