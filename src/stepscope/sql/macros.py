"""Functions for what everyone needs.  Each is SQL that a query can call; none takes a name of its own from the engine.

A function that gives a table is called where a table stands: `FROM nested_under('forward')`, and of an attached session
`FROM before.nested_under('forward')`.
"""

from __future__ import annotations

from stepscope.records import dataclass


@dataclass(frozen=True)
class Macro:
    """A function.

    Attributes:
        call: its name and parameters, as in a query.
        doc: what it gives.
        body: SQL; `{views}` stands for the schema of the session.
        is_table: whether it gives a table.
    """

    call: str
    doc: str
    body: str
    is_table: bool = False

    @property
    def name(self) -> str:
        """The name alone."""
        return self.call.partition("(")[0]

    def definition(self, schema: str) -> str:
        """The statement that makes it for the session of a schema."""
        body = self.body.replace("{views}", schema)
        return f"CREATE MACRO {schema}.{self.call} AS {'TABLE ' if self.is_table else ''}{body}"


MACROS: tuple[Macro, ...] = (
    Macro("us(ps)", "picoseconds as microseconds", "ps / 1e6"),
    Macro("ms(ps)", "picoseconds as milliseconds", "ps / 1e9"),
    Macro("seconds(ps)", "picoseconds as seconds", "ps / 1e12"),
    Macro(
        "per_step(total)",
        "a total divided by the number of steps, over all hosts",
        "total / (SELECT count(*) FROM {views}.steps)",
    ),
    Macro(
        "overlap_ps(start_a, end_a, start_b, end_b)",
        "for how long two stretches of time overlap; 0 if they do not",
        "greatest(least(end_a, end_b) - greatest(start_a, start_b), 0)",
    ),
    Macro(
        "self_time(pattern)",
        "calls, total and self time by name and kind, of events whose name is LIKE the pattern",
        """
        SELECT name, kind, count(*) AS calls, sum(duration_ps)::BIGINT AS total_ps, sum(self_ps)::BIGINT AS self_ps
        FROM {views}.events WHERE name LIKE pattern GROUP BY name, kind ORDER BY self_ps DESC
        """,
        is_table=True,
    ),
    Macro(
        "by_step(pattern)",
        "calls, total and self time by host and step, of events whose name is LIKE the pattern",
        """
        SELECT host, step, count(*) AS calls, sum(duration_ps)::BIGINT AS total_ps, sum(self_ps)::BIGINT AS self_ps
        FROM {views}.events WHERE name LIKE pattern AND step IS NOT NULL GROUP BY host, step ORDER BY host, step
        """,
        is_table=True,
    ),
    Macro(
        "nested_under(pattern)",
        "the events inside events whose name is LIKE the pattern, at any depth, each once",
        """
        WITH RECURSIVE inside AS (
            SELECT event FROM {views}.events WHERE name LIKE pattern
            UNION
            SELECT event FROM {views}.events WHERE parent IN (SELECT event FROM inside)
        )
        SELECT * FROM {views}.events WHERE parent IN (SELECT event FROM inside)
        """,
        is_table=True,
    ),
    Macro(
        "busy(pattern)",
        "when device work whose kind is LIKE the pattern runs on each device, as stretches that do not overlap",
        """
        SELECT host, device, min(start_ps) AS start_ps, max(end_ps) - min(start_ps) AS duration_ps,
            max(end_ps) AS end_ps
        FROM (
            SELECT *, sum(starts) OVER (PARTITION BY host, device ORDER BY start_ps, end_ps) AS stretch FROM (
                SELECT host, device, start_ps, end_ps, CASE WHEN start_ps <= max(end_ps) OVER (
                    PARTITION BY host, device ORDER BY start_ps, end_ps ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ) THEN 0 ELSE 1 END AS starts
                FROM {views}.kernels WHERE kind LIKE pattern
            )
        )
        GROUP BY host, device, stretch ORDER BY host, device, start_ps
        """,
        is_table=True,
    ),
    Macro(
        "overlapped(pattern_a, pattern_b)",
        "by device: how long work of the first kind runs, and for how much of that work of the second kind runs too",
        """
        WITH edges AS (
            SELECT host, device, start_ps AS time_ps, 1 AS a, 0 AS b FROM {views}.kernels WHERE kind LIKE pattern_a
            UNION ALL SELECT host, device, end_ps, -1, 0 FROM {views}.kernels WHERE kind LIKE pattern_a
            UNION ALL SELECT host, device, start_ps, 0, 1 FROM {views}.kernels WHERE kind LIKE pattern_b
            UNION ALL SELECT host, device, end_ps, 0, -1 FROM {views}.kernels WHERE kind LIKE pattern_b
        ), stretches AS (
            SELECT host, device, lead(time_ps) OVER until_here - time_ps AS ps, sum(a) OVER until_here AS running_a,
                sum(b) OVER until_here AS running_b
            FROM edges
            WINDOW until_here AS (PARTITION BY host, device ORDER BY time_ps ROWS UNBOUNDED PRECEDING)
        )
        SELECT host, device, coalesce(sum(ps) FILTER (running_a > 0), 0)::BIGINT AS busy_ps,
            coalesce(sum(ps) FILTER (running_a > 0 AND running_b > 0), 0)::BIGINT AS shared_ps
        FROM stretches GROUP BY host, device ORDER BY host, device
        """,
        is_table=True,
    ),
)
