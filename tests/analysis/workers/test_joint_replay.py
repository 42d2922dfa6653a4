"""Ranks replayed together, and what changes give them: drawn ranks that meet, with the expected steps beside them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from draw import MS, Sort, draw

from stepscope.analysis.account.contraction import contract
from stepscope.analysis.account.model import StepModel, model_of
from stepscope.analysis.account.replay import replay
from stepscope.analysis.advice.whatif import OVERLAP, REMOVE, SCALE, Change, WhatIfReport, what_if
from stepscope.analysis.workers.equal_work import Job
from stepscope.analysis.workers.joint_replay import (
    JointGraph,
    join_ranks,
    joint_error_percent,
    meeting_lengths,
    rank_of,
    replay_together,
)
from stepscope.analysis.workers.layout import Layout
from stepscope.analysis.workers.rank_graphs import meetings_of
from stepscope.analysis.workers.waiting import find_waits
from stepscope.model import EventKind as K
from stepscope.model import HostTrace

# A rank whose input takes 6 of 10 ms, and one that waits for it in the collective; both start their steps together.
LATE = """
host main | M0--------M1--------M2--------
host main | I-----aaG-I-----aaG-I-----aaG-
"""
EARLY = """
host main | M0--------M1--------M2--------
host main | I-aaG-----I-aaG-----I-aaG-----
"""
# Gradients are reduced on a stream of their own beside the backward pass; the next step's work waits for both.
DEVICES = {
    "N": Sort(K.COLLECTIVE, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "correlation_id"),
    "S": Sort(K.SYNC, "cudaDeviceSynchronize"),
}


def four_steps(host: str, compute: str, reduce: str) -> str:
    """Four steps of three rows, in which `#` and `%` are the numbers of two launches."""
    rows = [f"host main | {''.join(f'M{step}----------' for step in range(4))}"]
    for place, row in (("host main", host), ("gpu0 s7  ", compute), ("gpu0 s20 ", reduce)):
        numbered = (row.replace("#", str(2 * step + 1)).replace("%", str(2 * step + 2)) for step in range(4))
        rows.append(f"{place} | {''.join(numbered)}")
    return "\n".join(rows)


BESIDE = four_steps(
    "L#L%S-------",
    "  k#-----   ",
    "    N%------",
)
BEHIND = four_steps(
    "L#b---L%S---",
    "  k#-       ",
    "        N%--",
)


def sized(count: int) -> dict[str, Sort]:
    stats = {"In msg nelems": count, "Out msg nelems": count, "dtype": "Float"}
    return {"G": Sort(K.COLLECTIVE_CALL, "gloo:all_reduce", stats=stats)}


def joined(*traces: HostTrace) -> JointGraph:
    ranks = [rank_of(trace) for trace in traces]
    graph = join_ranks([rank for rank in ranks if rank is not None])
    assert graph is not None
    return graph


def steps_ms(graph: JointGraph) -> list[list[float]]:
    return [(steps / MS).tolist() for steps in replay_together(graph).step_ps]


def waits_ms(graph: JointGraph) -> list[list[float]]:
    count = len(graph.ranks)
    found = find_waits(Job(graph, Layout(np.full(count, -1), np.zeros(count, np.int64))))
    steps = zip(found, graph.keys_of_steps(), strict=True)
    return [[each.waiting[key] / MS for key in keys] for each, keys in steps]


def ask(traces: list[HostTrace], *changes: Change) -> WhatIfReport:
    models = [model_of(trace) for trace in traces]
    return what_if([model for model in models if model is not None], changes, lambda _: ())


def test_ranks_replay_together_as_they_were_recorded():
    graph = joined(draw(LATE, host="a"), draw(EARLY, host="b"))

    assert graph.common == 3
    assert steps_ms(graph) == [[10, 10, 10], [10, 10, 10]]
    assert joint_error_percent(graph, replay_together(graph)) == [0, 0]
    assert waits_ms(graph) == [[0] * 3, [4] * 3]


def test_without_its_input_the_late_rank_lets_all_others_go_on_as_well():
    found = ask([draw(LATE, host="a"), draw(EARLY, host="b")], Change(REMOVE, "input"))

    # 2 of work and 2 of communication are left on both; the second rank alone would still wait and take 8.
    assert found.figures["step_time_ms"] == 10
    assert found.figures["predicted_step_time_ms"] == 4
    assert found.figures["replay_error_percent"] == 0
    assert {row["cause"]: row["ms"] for row in found.causes} == {"host_compute": 2, "communication": 2}
    assert found.changes[0]["part_ms"] == 6  # on the rank that has most of it
    assert any("2 ranks were replayed together" in said for said in found.reasoning)


def test_a_gain_of_the_early_rank_is_lost_in_its_wait_for_the_late_one():
    early = draw(EARLY.replace("I-aa", "I-bb"), host="b")
    found = ask([draw(LATE, host="a"), early], Change(REMOVE, "b"))

    assert found.figures["predicted_step_time_ms"] == 10


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change(SCALE, "communication", 0.5), 9),  # of the 2 ms that it takes by itself, not of the wait
        (Change(REMOVE, "communication"), 8),
        (Change(OVERLAP, "communication"), 8),
    ],
)
def test_communication_is_what_the_last_rank_spends_on_it(change, expected):
    found = ask([draw(LATE, host="a"), draw(EARLY, host="b")], change)

    assert found.figures["predicted_step_time_ms"] == expected


def three_steps(host: str, gloo: str) -> str:
    """Three steps of 40 ms, in which a thread of Gloo's reduces for the loop's thread."""
    step = "".join(f"M{number}".ljust(40, "-") for number in range(3))
    return f"host main | {step}\nhost main | {host.ljust(40) * 3}\nhost gloo | {gloo.ljust(40) * 3}"


def test_a_collective_ends_where_it_lets_the_loop_go_on():
    early = three_steps("a-                              b-------", "  G------------------------------")
    late = three_steps("a----------------------------    b-------", "                             G--")
    graph = joined(draw(early, host="a"), draw(late, host="b"))

    assert steps_ms(graph) == [[40] * 3, [40] * 3]
    # What the record of the collective says beyond the 3 ms of the late rank is no work.
    assert [(length[:3] / MS).tolist() for length in meeting_lengths(graph)] == [[3] * 3] * 2


def test_a_collective_on_a_stream_of_its_own_takes_time_only_where_work_does_not_cover_it():
    traces = [draw(BESIDE, DEVICES, host="a"), draw(BEHIND, DEVICES, host="b")]
    graph = joined(*traces)

    assert graph.common == 4
    assert joint_error_percent(graph, replay_together(graph)) == [0, 0]
    assert waits_ms(graph) == [[0] * 4] * 2  # beside its own work no rank waits
    # It would end after 8 ms, and the first rank computes until the 9th.
    assert ask(traces, Change(REMOVE, "b")).figures["predicted_step_time_ms"] == 9


def test_collectives_of_other_sizes_are_not_the_same_and_keep_their_lengths():
    late, early = draw(LATE, sized(1000), host="a"), draw(EARLY, sized(2000), host="b")
    ranks = [rank for rank in (rank_of(late), rank_of(early)) if rank is not None]

    assert join_ranks(ranks) is None
    found = ask([late, early], Change(REMOVE, "input"))
    assert "replayed alone, waits for others as recorded: no collective matches" in "; ".join(found.reasoning)
    assert found.figures["predicted_step_time_ms"] == 8  # the early rank's own replay: its wait stays


def test_one_collective_that_does_not_match_is_counted_and_the_others_meet():
    extra = {"E": Sort(K.COLLECTIVE_CALL, "gloo:barrier")}
    graph = joined(
        draw(LATE.replace("I-----aaG-I-----aaG-I", "I-----aaG-I---E-aaG-I"), extra, host="a"),
        draw(EARLY.replace("I-aaG-----I", "I-aaG---E-I"), extra, host="b"),
    )

    assert graph.common == 3
    works = sum(len(rank.graph.kind) for rank in graph.ranks)
    assert len(set(graph.meeting.tolist())) == 3 + 2 + 2 * 4 + works  # two of one rank each, and the bounds


def test_ranks_that_come_to_collectives_in_another_order_do_not_wait_in_circles():
    extra = {"E": Sort(K.COLLECTIVE_CALL, "gloo:barrier")}
    first = "host main | M0--------M1--------\nhost main | aaG-bbE---aaG-bbE---"
    second = "host main | M0--------M1--------\nhost main | aaE-bbG---aaE-bbG---"
    graph = joined(draw(first, extra, host="a"), draw(second, extra, host="b"))

    assert graph.common == 2
    assert graph.uneven == 2
    assert steps_ms(graph) == [[10, 10], [10, 10]]


def test_no_recorded_time_is_read():
    trace = draw(BEHIND, DEVICES)
    model = model_of(trace)
    assert model is not None
    meetings = meetings_of(trace, model.graph)[0]
    mixed = np.random.default_rng(3).permutation(model.graph.start_ps)

    plain = contract(model.graph, meetings)
    hidden = contract(replace(model.graph, start_ps=mixed, end_ps=mixed), meetings)

    for one, other in zip(vars(plain).values(), vars(hidden).values(), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("ahead_ns", [0, 5_000_000_000, -300_000_000])
def test_clocks_that_differ_change_nothing(ahead_ns):
    start = 1_700_000_000_000_000_000
    graph = joined(draw(LATE, host="a", start_unix_ns=start), draw(EARLY, host="b", start_unix_ns=start + ahead_ns))
    late_start = joined(draw(LATE, host="a"), draw(EARLY.replace("| ", "| z-"), host="b"))

    assert steps_ms(graph) == [[10, 10, 10], [10, 10, 10]]
    assert [steps[1:] for steps in steps_ms(late_start)] == [[10, 10], [10, 10]]


def test_the_joint_replay_of_all_nodes_is_that_of_the_meetings():
    from stepscope.analysis.account.interventions import RangeEnd
    from stepscope.analysis.workers.predict_ranks import _expand, _play, join_models

    models: list[StepModel] = []
    for name, picture in (("a", BESIDE), ("b", BEHIND)):
        model = model_of(draw(picture, DEVICES, host=name))
        assert model is not None
        models.append(model)
    joint, _ = join_models(models)
    assert joint is not None
    played = _play(joint, [[], []], RangeEnd.USUAL, [1.0, 1.0])

    for at, model in enumerate(joint.models):
        expanded = _expand(joint, played, at)
        again = replay(model.graph, expanded.own_ps.sum_by_node().astype(np.int64))
        assert again.step_ps.tolist() == played.step_ps[at].tolist()


# -- sends and receives ------------------------------------------------------------------------------------------------


def transfer(name: str, peer: int, group: str = "[0, 1, 2]") -> Sort:
    end = {"Dst Rank": peer} if name == "send" else {"Src Rank": peer}
    stats = {
        "Collective name": name,
        "Process Group Name": "p",
        "Process Group Ranks": group,
        **(end if peer >= 0 else {}),
    }
    return Sort(K.COLLECTIVE, "ncclDevKernel_SendRecv", "correlation_id", stats)


def stage(rank: int, picture: str, **sorts: Sort) -> HostTrace:
    """A stage that launches all of its work ahead: steps of ten ms, numbered calls and kernels."""
    host = "host main | M0------------------M1------------------\n"
    return draw(host + picture, {**DEVICES, **sorts}, host=f"rank{rank}")


SENDER = """
host main | L1L2S---------------L3L4S---------------
gpu0 s7   |   k1------            k3------
gpu0 s7   |           X2--                X4--
"""
RECEIVER = """
host main | L1L2S---------------L3L4S---------------
gpu0 s7   |   X1----------        X3----------
gpu0 s7   |               k2----              k4----
"""


@pytest.mark.parametrize("group", ["[0, 1, 2]", "[0, 1]"])
def test_a_receive_lasts_until_its_send_has_come_and_moved_the_data(group: str):
    known = group == "[0, 1, 2]"  # in a group of two nobody has to say with whom
    graph = joined(
        stage(0, SENDER, X=transfer("send", 1 if known else -1, group)),
        stage(1, RECEIVER, X=transfer("recv", 0 if known else -1, group)),
    )

    assert (graph.common, graph.uneven, graph.unknown) == (2, 0, 0)
    assert joint_error_percent(graph, replay_together(graph)) == [0, 0]
    assert waits_ms(graph) == [[0, 0], [8, 8]]


def test_a_transfer_that_does_not_say_with_whom_is_counted_and_keeps_its_length():
    traces = (
        stage(0, SENDER, X=transfer("send", -1)), stage(1, RECEIVER, X=transfer("recv", -1)),
    )  # fmt: skip
    assert join_ranks([rank for trace in traces if (rank := rank_of(trace)) is not None]) is None


def test_a_kernel_that_sends_and_receives_waits_for_each_partner_but_these_not_for_each_other():
    # The middle rank receives from the first and sends to the last in one kernel.  In the last step the first rank is
    # free when the middle one has come, at 12 + 4 ms; the middle one when the last one has come, at 14 + 4 ms.
    asked = {
        "A": Sort(K.COLLECTIVE_CALL, "record_param_comms", stats=transfer("recv", 0).stats),
        "B": Sort(K.COLLECTIVE_CALL, "record_param_comms", stats=transfer("send", 2).stats),
        "X": Sort(K.COLLECTIVE, "ncclDevKernel_SendRecv", "correlation_id"),
    }
    first = """
    host main | M0------------------M1------------------M2------------------
    host main | L1L2S---------------L3L4S---------------L5L6S---------------
    gpu0 s7   |   k1--                k3--                k5--
    gpu0 s7   |       X2--------          X4--------          X6--------
    """
    middle = """
    host main | M0------------------M1------------------M2------------------
    host main | ABL1L2S-------------ABL3L4S-------------ABL5L6S-------------
    gpu0 s7   |     k1------            k3------            k5------
    gpu0 s7   |             X2--                X4--                X6----
    """
    last = """
    host main | M0------------------M1------------------M2------------------
    host main | L1L2S---------------L3L4S---------------L5L6S---------------
    gpu0 s7   |   k1--                k3--                k5----------
    gpu0 s7   |       X2--------          X4--------                  X6--
    """
    own = (transfer("send", 1), None, transfer("recv", 1))
    traces = [
        draw(picture, {**DEVICES, **asked, **({"X": sort} if sort else {})}, host=f"rank{rank}")
        for rank, (picture, sort) in enumerate(zip((first, middle, last), own, strict=True))
    ]
    graph = joined(*traces)
    done_ms = (replay_together(graph).done_ps / MS).tolist()

    assert graph.met == 9  # no two kernels wait for the same ones
    assert [done_ms[row : row + 3] for row in graph.first_row[:-1].tolist()] == [
        [16, 36, 56],
        [16, 36, 58],
        [16, 36, 58],
    ]
    assert joint_error_percent(graph, replay_together(graph)) == [0, 0, 0]
