/** The parts of the reports' JSON that the pages draw from; the names are the project's contract. */
import type { Cell, Report } from "../../api";

/** A request that ended the program, in bytes. */
export interface Asked {
  readonly place: Cell;
  readonly requested_bytes: Cell;
  readonly used_bytes: Cell;
  readonly free_bytes: Cell;
  readonly is_too_large?: Cell;
}

export type Row = Readonly<Record<string, Cell>>;

/** A row of a tool's main table that an advice stands on. */
export interface EvidenceRow {
  readonly tool: string;
  readonly key: string;
  /** Per step; 0 where the row is named without a time of its own. */
  readonly value_ms: number;
}

/** A place in the trace that shows it. */
export interface EvidenceInterval {
  readonly host: string;
  readonly name: string;
  readonly start_ms: number;
  readonly end_ms: number;
}

export interface Advice {
  readonly id: string;
  readonly class: string;
  readonly title: string;
  readonly evidence: string;
  readonly predicted_speedup: number | null;
  readonly predicted_speedup_least: number | null;
  readonly predicted_speedup_most: number | null;
  readonly confidence: number | null;
  readonly step_time_ms: number | null;
  readonly predicted_step_time_ms: number | null;
  readonly reasoning: string;
  /** Of the first: that nothing known shortens what the verdict names; null where this does. */
  readonly beside: string | null;
  /** What `stepscope prove` measured of it in the running job; null if it was not tried. */
  readonly measured: Measured | null;
  /** The command that measures it; null where there is nothing to delay or to leave out. */
  readonly prove: string | null;
  /** What a person can edit, in the median step; null where the trace names nothing. */
  readonly culprit: Culprit | null;
  readonly rows: readonly EvidenceRow[];
  readonly intervals: readonly EvidenceInterval[];
  readonly docs: string | null;
  readonly actions: readonly string[];
  readonly tool: string;
}

export interface Measured {
  readonly speedup: number;
  readonly speedup_least: number;
  readonly speedup_most: number;
  readonly sentence: string;
}

export interface Culprit {
  readonly name: string;
  readonly file: string | null;
  readonly line: number | null;
  readonly op: string | null;
  readonly layer: string | null;
  readonly calls: number;
  readonly ms: number;
}

export interface OverviewReport extends Report {
  readonly step_time_ms: {
    readonly mean: number | null;
    readonly std: number | null;
    readonly min: number | null;
    readonly max: number | null;
    readonly count: number;
  };
  readonly median_step_ms: number | null;
  readonly between_steps_percent: number | null;
  /** The request that ended the program, where no memory could hold it. */
  readonly too_large_request?: Asked | null;
  readonly steps_source: string;
  readonly steps_how: string;
  readonly verdict: string;
  readonly verdict_cause: string | null;
  readonly verdict_text: string;
  readonly verdict_evidence: readonly string[];
  /** The step that the account is of; null without steps. */
  readonly account_step: {
    readonly step: number;
    readonly host: string;
    readonly ms: number;
    readonly median_of: number;
    /** False of a step that is much longer than the median, as such steps take most of the time. */
    readonly is_median: boolean;
    /** Its causes in the order of time, each with how long it goes on in ms. */
    readonly moments?: readonly (readonly [cause: string, ms: number])[];
  } | null;
  /** What each device of that host does during that step, and what it waits for while it idles. */
  readonly account_devices?: readonly {
    readonly device: string;
    readonly busy_ms: number;
    readonly causes_ms: Readonly<Record<string, number>>;
  }[];
  /** What the median step is spent on, the longest first. */
  readonly account?: readonly {
    readonly cause: string;
    readonly ms: number;
    readonly percent: number;
    readonly culprit: Culprit | null;
  }[];
  readonly top_ops: readonly Row[];
  readonly top_op_types?: readonly Row[];
  readonly advice: readonly Advice[];
  readonly missing: readonly { readonly what: string; readonly remedy: string }[];
  readonly profiling_cost_percent: number | null;
  readonly profiling_cost_is_clear: boolean | null;
  readonly steps?: readonly OverviewStep[];
}

export type OverviewStep = Row & {
  readonly step: number;
  readonly name: string;
  readonly duration_ms: number;
  readonly complete: boolean;
  readonly usual: boolean;
  /** Of several hosts the one that sets the pace. */
  readonly slowest_host: string;
};

export type StepRow = Row & {
  readonly step: number;
  readonly name: string;
  readonly host: string;
  readonly start_ms: number;
  readonly duration_ms: number;
  readonly complete: boolean;
};

export interface StepsReport extends Report {
  readonly rows?: readonly StepRow[];
  readonly steps_source: string;
  readonly confidence: number | null;
}

/** What `stepscope compare` says: the session that the open one is compared with is before, the open one after. */
export interface CompareReport extends Report {
  readonly verdict: "faster" | "slower" | "within_noise" | "unknown";
  readonly verdict_text: string;
  readonly mismatches: readonly string[];
  readonly difference_ms: number | null;
  readonly uncertainty_ms: number | null;
  readonly notes: readonly string[];
  readonly tables: readonly ComparedTable[];
  /** Only of the overview. */
  readonly breakdown?: readonly (Row & {
    readonly cause: string;
    readonly before_ms: number | null;
    readonly after_ms: number | null;
  })[];
}

/** What a table of differences is about; its section has the same id. */
export interface ComparedTable {
  readonly id: string;
  readonly title: string;
  readonly sentences: readonly string[];
  /** How many steps totals are divided by; null if they are not. */
  readonly before_steps: number | null;
  readonly after_steps: number | null;
}
