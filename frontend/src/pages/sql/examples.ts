/** Questions to start with, which need no change to run on any profile. */
export interface Example {
  readonly question: string;
  readonly query: string;
}

export const EXAMPLES: readonly Example[] = [
  {
    question: "What do the steps wait for?",
    query:
      "SELECT cause, ms(sum(duration_ps)) AS ms,\n" +
      "    round(100 * sum(duration_ps) / sum(sum(duration_ps)) OVER (), 1) AS percent\n" +
      "FROM causes GROUP BY cause ORDER BY ms DESC",
  },
  {
    question: "What takes the most time of its own?",
    query:
      "SELECT name, kind, count(*) AS calls, ms(sum(self_ps)) AS ms\n" +
      "FROM events GROUP BY ALL ORDER BY ms DESC LIMIT 20",
  },
  {
    question: "Which steps are slowest, and what takes longer in them than usual?",
    query:
      "WITH own AS (SELECT host, step, cause, sum(duration_ps) AS ps FROM causes GROUP BY ALL),\n" +
      "usual AS (SELECT cause, median(ps) AS usual_ps FROM own GROUP BY cause)\n" +
      "SELECT step, ms(any_value(s.duration_ps)) AS step_ms, arg_max(cause, ps - usual_ps) AS longer_in,\n" +
      "    ms(max(ps - usual_ps)) AS longer_ms\n" +
      "FROM own JOIN usual USING (cause) JOIN steps s USING (host, step)\n" +
      "GROUP BY host, step ORDER BY step_ms DESC LIMIT 5",
  },
  {
    question: "Which kernels belong to each op?",
    query:
      "SELECT op, name, count(*) AS calls, ms(sum(duration_ps)) AS ms\n" +
      "FROM kernels WHERE kind = 'kernel' GROUP BY op, name ORDER BY ms DESC LIMIT 20",
  },
  {
    question: "How long after its launch does a kernel start?",
    query:
      "SELECT k.device, k.stream, count(*) AS launches, us(median(l.delay_ps)) AS median_us\n" +
      "FROM launches l JOIN kernels k ON k.event = l.kernel GROUP BY ALL ORDER BY median_us DESC",
  },
  {
    question: "Where are the longest gaps between the work of a stream?",
    query:
      "SELECT host, device, stream, name AS after, end_ps AS start_ps, next_ps - end_ps AS duration_ps FROM (\n" +
      "    SELECT *, lead(start_ps) OVER (PARTITION BY host, device, stream ORDER BY start_ps) AS next_ps\n" +
      "    FROM kernels\n" +
      ") WHERE next_ps > end_ps ORDER BY duration_ps DESC LIMIT 10",
  },
];
