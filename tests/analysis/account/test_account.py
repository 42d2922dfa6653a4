"""The account of the median step on drawn traces: each picture has the account drawn below it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from draw import MS, Sort, draw
from gallery import gallery

from stepscope.analysis.account.account import AccountRow, StepAccount, account_of, account_shown
from stepscope.analysis.account.culprits import Culprit
from stepscope.model import EventKind as K
from stepscope.model import HostTrace

SYNC = Sort(K.SYNC, "cudaStreamSynchronize")
ITEM = Sort(K.PYTHON_CALL, "train.py(9): __getitem__")
LOADER = Sort(K.PYTHON_CALL, "/x/site-packages/torch/utils/data/dataloader.py(7): fetch")
LOOP = Sort(K.PYTHON_CALL, "train.py(20): main")
LAYER = Sort(K.PYTHON_CALL, "nn.Module: Linear_0")
GLOO = {"C": Sort(K.COLLECTIVE_CALL, "c10d::allreduce_"), "G": Sort(K.COLLECTIVE_CALL, "gloo:all_reduce")}
ALLREDUCE = Sort(K.COLLECTIVE, "ncclAllReduce", "correlation_id")


def account(trace: HostTrace) -> StepAccount:
    found = account_of(trace)
    assert found is not None
    assert sum(row.ps for row in found.rows) == found.step_ps
    return found


def causes(trace: HostTrace) -> dict[str, float]:
    """The causes in ms."""
    return {row.cause: row.ps / MS for row in account(trace).rows}


SORTS = GLOO | {
    "S": SYNC,
    "p": LOOP,
    "Z": Sort(K.RUNTIME_CALL, "cudaMemcpyAsync", "correlation_id"),
    "Q": Sort(K.OTHER, "CommonPjRtBuffer::Await"),
    "O": Sort(K.OTHER, "note"),
}


@gallery("""
    a device that computes all the time is the cause: LLkkkkkkkkkkkkkks, and the return from the wait for it
        host main | M0---------------M1---------------
        host main | L1L2L3S----------L4L5L6S----------
        gpu0 s    |   K1---K2--K3---   K4---K5--K6---
        causes = {"device_compute": 14, "launch": 2, "sync": 1}
    a capture without steps that the device ends computes after its last launch: LLkkkkkkhhhhhhhhhhkkkkkkkk
        host main | p---------
        host main | L1L2L3
        gpu0 s    |   K1----H2--------K3------
        causes = {"device_compute": 24, "launch": 2}
    launches into a full queue wait for the device: the queue of s holds three, L4 returns once K1 has ended
        host main | M0--------------------------------------
        host main | L1L2L3L4--L5----L6S---------------------
        gpu0 s    |   K1----K2----K3----K4----K5----
        gpu0 t    |                   K6------------------
        # LLkkkkkkkkkkkkssLLkkkkkkkkkkkkkkkkkkkkss
        causes = {"device_compute": 36, "launch": 2, "sync": 2}
        gains = {"device_compute": 24, "launch": 4, "sync": 4}
    a long launch that no full queue explains is launching: L4 and L5 return long after the last work has ended
        host main | M0--------------------------------------
        host main | L1L2L3L4--L5----L6S---------------------
        gpu0 s    |   K1---K2----K3-----K4--K5--
        gpu0 t    |                   K6------------------
        causes = {"device_compute": 36, "launch": 2, "sync": 2}
        gains = {"device_compute": 20, "launch": 12, "sync": 2}
    a long launch during which nothing has ended is launching
        host main | M0--------------------------------------
        host main | L1L2L3L4--L5----L6S---------------------
        gpu0 s    |   K1--------------K2----
        gpu0 t    |                   K6------------------
        causes = {"device_compute": 36, "launch": 2, "sync": 2}
        gains = {"device_compute": 20, "launch": 16, "sync": 2}
    a long launch before one that finds more in the queue and returns at once is launching
        host main | M0--------------------------------------
        host main | L1L2L3----L4L5L7L6S---------------------
        gpu0 s    |   K1----K2----------K3--K4--K5--K7
        gpu0 t    |                   K6------------------
        causes = {"device_compute": 36, "launch": 2, "sync": 2}
        gains = {"device_compute": 20, "launch": 6, "sync": 2}
    a launch as long as the one before it, in which nothing has ended, is launching
        host main | M0--------------------------------------
        host main | L1L2----L3----L4L6S---------------------
        gpu0 s    |   K1--------K2----K3--K4--
        gpu0 t    |                   K6------------------
        causes = {"device_compute": 36, "launch": 2, "sync": 2}
        gains = {"device_compute": 20, "launch": 14, "sync": 2}
    what was launched before waits for the device as well, not for the call that copies and returns late
        host main | M0----------------------------
        host main | L1Z2-----L3Z4-----------------
        gpu0 s    |   K1--D2-           K3--D4-
        causes = {"device_compute": 8, "copy": 6, "launch": 4, "sync": 3, "unknown": 9}
    a copy that ends late is one all the same
        host main | M0----------------------------
        host main | L1Z2-----L3Z4-----------------
        gpu0 s    |   K1--D2-  K3--         D4-
        causes = {"device_compute": 8, "copy": 6, "launch": 4, "sync": 12}
    a copy that takes long is no wait
        host main | M0----------------------------
        host main | L1Z2-----L3Z4-----------------
        gpu0 s    |   K1--D2-  K3--------D4----
        causes = {"device_compute": 14, "copy": 9, "launch": 4, "sync": 3}
    launched work waits on a silent device: what that does then was not recorded, whatever the host waits in
        host main | M0---------------------------
        host main | L1L2L3S----------------------
        gpu0 s    |   K1--            K2--K3--
        causes = {"device_compute": 12, "launch": 2, "sync": 3, "unknown": 12}
    so it is for the first work of a queue, long after its launch
        host main | M0---------------------------
        host main | L1L2L3S----------------------
        gpu0 s    |                   K1----K2K3-
        causes = {"device_compute": 11, "launch": 2, "unknown": 16}
    another queue that works meanwhile holds it up
        host main | M0---------------------------
        host main | L1L2L3S----------------------
        gpu0 s    |   K1--            K2--
        gpu0 t    |       K3----------
        causes = {"device_compute": 20, "launch": 2, "sync": 7}
    to start a collective of a device is launching
        host main | M0------------M1------------
        host main | C-----S-------C-----S-------
        host main | L1            L3
        gpu0 s    |   N1----------  N3----------
        causes = {"launch": 2, "communication": 12}
    exposed communication is told apart from what overlaps computation
        host main | M0--------------M1--------------
        host main | L1L2S-----------L3L4S-----------
        gpu0 s    |   K1-----         K3-----
        gpu0 t    |          N2-----         N4-----
        causes = {"communication": 7, "device_compute": 7, "launch": 2}
    a step whose work nothing launched says what it could not connect
        tpu0 Steps | W0------W1------
        tpu0 ops   | k--  k--k--  k--
        causes = {"device_compute": 6, "unknown": 2}
        step_ms = 8
    without steps the capture is accounted for as one
        host main | a--b--c
        has_steps = False
        why_not = "no steps were found"
        causes = {"host_compute": 7}
    steps that do not follow each other are accounted for without the time between them
        tpu0 Steps | W0---            W1---
        tpu0 ops   | k-k--            k-k--
        step_ms = 5
        causes = {"device_compute": 5}
        why_not = "the steps do not follow each other"
    the median step stands for the steps
        host main | M0--M1--------M2---M3---M4----
        host main | a---a---------a----a----a-----
        step_ms = 5
    where outliers take most of the time one of them stands for the steps: two workers deliver at once, and then none
        host main | M0-------------M1-M2-------------M3-M4-------------M5-
        host main | I----------- aa aaI----------- aa aaI----------- aa aa
        step_ms = 15
        longest = "input"
    threads that nothing connects carry no forecast
        host main | M0------M1------M2------
        host main | a-------a-------a-------
        gpu0 s    | k------ k------ k------
        why_not = "nothing recorded connects the threads and devices that work in the step"
    a mark that its thread starts to wait is believed until the others are done; of what comes then nothing is known
        host main | M0----------------------M1----------------------M2
        host main | Q!                      Q!                      Q
        host pool |         a---------              a---------      a
        causes = {"host_compute": 10, "unknown": 14}
    a thread of which nothing says what it does waits while others compute
        host main | M0----------------------M1----------------------M2
        host main | O!                      O!                      O
        host pool |         a---------              a---------      a
        causes = {"host_compute": 10, "unknown": 14}
    of a lone thread nothing is known whatever a mark says
        host main | M0----M1----M2
        host main | Q!    Q!    Q
        causes = {"unknown": 6}
    a wait for a thread of gloo is communication and not python
        host main  | M0-------------M1-------------
        host main  | aaC         bbbaaC         bbb
        host gloo1 |    G--------      G--------
        causes = {"communication": 10, "host_compute": 5}
    a thread of gloo may close its call after it has woken the one that waits
        host main  | M0----------------------------M1----------------------------
        host main  | aaC                         bbaaC                         bb
        host gloo1 |    G-------------------------    G-------------------------
        causes = {"communication": 26, "host_compute": 4}
    silence beside a collective that ends much earlier is communication until then
        host main  | M0-------------M1-------------
        host main  | aaC         bbbaaC         bbb
        host gloo1 |    G----          G----
        causes = {"communication": 6, "unknown": 4, "host_compute": 5}
    a kernel beside a longer host is not what limits: without it the host needs 11 ms as before
        host main | M0---------M1---------M2---------
        host main | I-------L1 I-------L2 I-------L3
        gpu0 s    |           K1-------  K2-------  K3-------
        causes = {"input": 8, "launch": 2, "device_compute": 1}
        gains = {"input": 2, "launch": 2, "device_compute": 1}
        rivals = [("device_compute", 1, 7)]
        why_not = None
    a cause with nothing behind it gains all of its time
        host main | M0---     M1---     M2---
        host main | aaaaaI----aaaaaI----aaaaa
        causes = {"input": 5, "host_compute": 5}
        gains = {"input": 5, "host_compute": 5}
        rivals = []
    where most of a step is unexplained no gain is stated
        tpu0 Steps | W0------W1------
        tpu0 ops   | k--    kk--    k
        why_not = "50.0 % of the step is unexplained; the limit is a third"
        gains = {"device_compute": None, "unknown": None}
        rivals = []
""")
def test_account(picture, expected):
    shown = account(draw(picture, SORTS))
    found = {
        "causes": {row.cause: row.ps / MS for row in shown.rows},
        "gains": {row.cause: row.gain_ps and row.gain_ps / MS for row in shown.rows},
        "rivals": [(rival.cause, rival.now_ps / MS, rival.then_ps / MS) for rival in shown.rivals],
        "longest": shown.rows[0].cause,
        "step_ms": shown.step_ps / MS,
        "has_steps": shown.has_steps,
        "why_not": shown.why_not,
    }
    assert {name: found[name] for name in expected} == expected


def test_input_that_the_device_waits_for_is_the_cause_and_its_function_the_culprit():
    trace = draw(
        """
        host main | Z---------------------------------
        host main |  M0-----------   M1-----------   M2
        host main |  L1S------  I----L2S------  I----L3
        host main |              Q---            Q---
        host main |              Y--             Y--
        gpu0 s    |    K1-----         K2-----
        """,
        {"S": SYNC, "Y": ITEM, "Q": LOADER, "Z": LOOP},
    )
    found = account(trace)
    first = found.rows[0]

    assert found.step_ps == 16 * MS
    assert causes(trace) == {"input": 5, "device_compute": 7, "launch": 2, "python": 2}
    culprit = next(row.culprit for row in found.rows if row.cause == "input")
    assert culprit is not None
    assert (culprit.name, culprit.file, culprit.line, culprit.calls) == ("__getitem__", "train.py", 9, 1)
    assert first.cause == "device_compute"


def test_what_a_pool_of_the_input_pipeline_computes_is_input():
    trace = draw(
        """
        host main                         | M0----------M1----------M2----------
        host main                         | aaI-------- aaI-------- aaI--------
        host tf_data_iterator_resource    |   Q--------   Q--------   Q--------
        host tf_data_iterator_resource    |   P1!         P2!         P3!
        host tf_data_private_threadpool   |    S1------T   S2------T   S3------T
        host tf_data_private_threadpool   |    b-------    b-------    b-------
        """,
        {"Q": Sort(K.INPUT_CALLBACK, "InstantiatedCapturedFunction::Run")},
    )
    rows = {row.cause: row for row in account(trace).rows}

    assert rows["input"].ps == 9 * MS
    assert rows["input"].culprit is not None and rows["input"].culprit.name == "b"
    assert rows["input"].gain_ps == 9 * MS
    assert rows["host_compute"].ps == 2 * MS


def test_a_layer_is_the_module_around_the_call_that_launched_the_work():
    trace = draw(
        """
        host main | M0-------------M1-------------
        host main |  Y----          Y----
        host main |  b--S----------|b--S----------
        host main |  L1             L2
        gpu0 s    |    K1----------    K2---------
        """.replace("|b", " b"),
        {"S": SYNC, "Y": LAYER},
    )
    compute = next(row for row in account(trace).rows if row.cause == "device_compute")
    assert compute.culprit is not None
    assert compute.culprit.layer == "Linear_0"


def test_steps_in_which_the_same_ops_take_longer_do_not_stand_for_the_others():
    quick, slow = "   a-b-", "   a------------b------------"  # as on a machine that was busy in the last steps
    marks = "".join(f"M{at}{'-' * (len(ops) - 2)}" for at, ops in enumerate([quick] * 5 + [slow] * 4))
    trace = draw(f"host main | {marks}\nhost main | {quick * 5 + slow * 4}")

    assert account(trace).step_ps == 7 * MS


def test_steps_with_more_ops_than_the_others_stand_for_them_where_they_take_most_of_the_time():
    quick, slow = "   a-", "   a-b-b-b-b-b-b-b-b-"  # as where some steps evaluate
    marks = "".join(f"M{at}{'-' * (len(ops) - 2)}" for at, ops in enumerate([quick] * 5 + [slow] * 4))
    trace = draw(f"host main | {marks}\nhost main | {quick * 5 + slow * 4}")

    assert account(trace).step_ps == 21 * MS


# -- what each cause gains, and what stands behind the longest -----------------------------------------------------


def test_the_noise_of_a_share_is_two_errors_of_its_median_over_the_steps():
    trace = draw(
        """
        host main | M0---  M1---     M2---        M3---
        host main | aaaaaI-aaaaaI----aaaaaI-------aaaaa
        """
    )
    shares = [100 * 2 / 7, 100 * 5 / 10, 100 * 8 / 13]
    quartiles = (shares[2] + shares[1]) / 2 - (shares[1] + shares[0]) / 2

    noise = account(trace).noise_percent
    assert noise["input"] == pytest.approx(1.858 * quartiles / 3**0.5, rel=1e-3)
    assert noise["host_compute"] == pytest.approx(noise["input"])


# -- whose a frame is ----------------------------------------------------------------------------------------------

PYTHON_OF_A_LOOP = """
    host main | M0--------M1--------M2--------
    host main | Y-------- Y-------- Y--------
    host main |  Z------   Z------   Z------
    host main |   Q-----    Q-----    Q-----
"""


def culprit_of(**names: str) -> Culprit:
    sorts = {letter: Sort(K.PYTHON_CALL, name) for letter, name in names.items()}
    found = account(draw(PYTHON_OF_A_LOOP, sorts)).rows[0].culprit
    assert found is not None
    return found


def test_memory_that_an_op_asks_for_is_time_of_that_op():
    """`B` asks for memory twice in each call, and longer than it does anything else."""
    trace = draw(
        """
        host main | M0-----------------M1-----------------M2
        host main | B------- B-------  B------- B-------  B
        host main | E--E--L1 E--E--L2  E--E--L3 E--E--L4
        gpu0 s    |         K1       K2        K3       K4
        """,
        {"B": Sort(K.OP, "aten::batch_norm"), "E": Sort(K.OP, "aten::empty")},
    )
    found = next(row.culprit for row in account(trace).rows if row.cause == "launch")

    assert found is not None
    assert (found.name, found.calls) == ("aten::batch_norm", 2)


def test_a_library_that_lies_in_no_known_folder_is_no_culprit_but_named_inside_it():
    found = culprit_of(Y="train.py(9): augment", Z="scipy/ndimage/x.py(3): zoom", Q="threading.py(5): run")

    assert (found.name, found.file, found.line) == ("augment", "train.py", 9)
    assert found.inside == "threading.py:5 run"


def test_a_file_of_a_framework_without_its_folder_is_no_culprit():
    found = culprit_of(Y="$train.py:9 step", Z="$pjit.py:30 call", Q="$core.py:5 bind")

    assert (found.name, found.file, found.line, found.inside) == ("step", "train.py", 9, "core.py:5 bind")


def test_a_file_name_that_anyone_may_have_is_the_users_unless_a_library_calls_it():
    found = culprit_of(Y="$train.py:9 step", Z="$utils.py:30 collate", Q="$utils.py:5 pad")

    assert (found.name, found.file, found.inside) == ("pad", "utils.py", None)


def test_collectives_of_other_threads_say_nothing_of_a_loop_of_which_nothing_was_recorded():
    trace = draw("host main | M0--------\nhost gloo | G--------------", SORTS)

    assert causes(replace(trace, framework="pytorch")) == {"unknown": 10}


def test_who_wakes_late_from_a_collective_for_lack_of_a_processor_has_contention():
    picture = """
        host main  | M0------------------M1------------------
        host main  | aaC              bbbaaC              bbb
        host gloo1 |    G--------           G--------
        """
    usage = [(at + start, at + end, ran, queued) for at in (0, 20) for start, end, ran, queued in
             ((0, 12, 3, 0), (12, 17, 0, 5), (17, 20, 3, 0))]  # fmt: skip

    assert causes(draw(picture, GLOO)) == {"communication": 10, "unknown": 5, "host_compute": 5}
    assert causes(draw(picture, GLOO, usage=usage)) == {"communication": 10, "contention": 5, "host_compute": 5}


def test_a_thread_of_gloo_that_starts_right_after_another_waits_for_their_caller_and_not_for_it():
    trace = draw(
        f"""
        host main  | {"".join(f"M{step}{'-' * 45}" for step in range(2))}
        host main  | {f"{'a' * 30}C---{' ' * 10}bbb" * 2}
        host gloo1 | {f"{' ' * 31}G{'-' * 11}    " * 2}
        host gloo2 | {f"{' ' * 32}G{'-' * 11}   " * 2}
        """,
        GLOO,
    )
    found = causes(trace)
    assert "unknown" not in found
    assert found["host_compute"] == 33


def test_a_thread_of_gloo_waits_for_the_call_that_hands_the_next_collective_over():
    trace = draw(
        """
        host main  | M0-------------------M1-------------------
        host main  | aaC   aaC         bbbaaC   aaC         bbb
        host gloo1 |    G--   G--------      G--   G--------
        """,
        GLOO,
    )
    assert "unknown" not in causes(trace)


def test_an_op_that_saves_state_is_a_checkpoint_and_no_launch():
    trace = draw(
        """
        host main | M0------------M1------------
        host main | FFFF  E-------FFFF  E-------
        host main |       S------       S------
        """,
        {
            "F": Sort(K.OP, "train_step"),
            "E": Sort(K.EAGER_EXECUTE, "EagerLocalExecute: SaveV2"),
            "S": Sort(K.EAGER_EXECUTE, "EagerKernelExecute"),
        },
    )
    assert causes(trace) == {"checkpoint": 8, "host_compute": 4, "unknown": 2}
    culprit = account(trace).rows[0].culprit
    assert culprit is not None
    assert culprit.name == "EagerLocalExecute: SaveV2"  # and not what TensorFlow calls inside it


def test_the_host_that_is_busy_longest_without_communication_stands_for_the_session():
    def host(name: str, *parts: tuple[str, int]) -> StepAccount:
        total = sum(ms for _, ms in parts)
        rows = [AccountRow(cause, ms * MS, None, None, None) for cause, ms in parts]
        shown = account(draw("host main | M0---M1---"))
        own_ps = sum(ms for cause, ms in parts if cause != "communication") * MS
        return replace(shown, host=name, step_ps=total * MS, rows=rows, own_ps=own_ps)

    waiting, late = host("a", ("communication", 80), ("python", 21)), host("b", ("python", 95), ("communication", 5))
    longer_by_chance = host("c", ("communication", 95), ("python", 20))

    assert account_shown([waiting, late]) == late
    assert account_shown([waiting, late, longer_by_chance]) == late
    assert account_shown([waiting, None, longer_by_chance]) == waiting
    assert account_shown([None]) is None


STACK = "/opt/lib/python3.11/site-packages/torch/nn/modules/conv.py(3): forward;train.py({line}): train;"


@pytest.mark.parametrize(("lines", "place"), [((42, 42), "train.py:42"), ((42, 51), "train.py:42"), ((0, 42), None)])
def test_an_op_that_carries_its_stack_is_followed_to_the_line_that_asks_for_it(lines, place):
    """The ops of a step take 7 and 3 ms; of the whole, the line of the first has most."""
    sorts = {
        name: Sort(K.OP, "aten::conv", stats={"Call stack": STACK.format(line=line)} if line else {})
        for name, line in zip("ab", lines, strict=True)
    }
    row = "a------b--" * 4
    found = account(draw(f"host main | {'M1--------' * 4}\nhost main | {row}", sorts)).rows[0]

    assert found.culprit is not None
    assert (found.culprit.name, found.culprit.where) == ("aten::conv", place)


@pytest.mark.parametrize(("range_", "culprit"), [("r" + "-" * 20, "find_centers"), (" " * 21, None)])
def test_what_is_unexplained_has_no_culprit_but_what_goes_on_through_it(range_, culprit):
    sorts = SORTS | {"r": Sort(K.OTHER, "find_centers")}
    found = account(draw(f"host main | M0{'-' * 24}\nhost main | {range_}aa", sorts))
    (unknown,) = [row for row in found.rows if row.cause in ("unknown", "python")]

    assert (unknown.culprit and unknown.culprit.name) == culprit


RANGES = {
    "p": Sort(K.ANNOTATION, "## forward ##"),
    "q": Sort(K.ANNOTATION, "## metrics ##"),
    "G": Sort(K.RUNTIME_CALL, "cudaGraphLaunch", "correlation_id"),
    "V": Sort(K.KERNEL, "attention", "correlation_id"),
}


def test_launches_of_many_ops_belong_to_the_range_of_the_program_that_holds_most_of_them():
    """`aten::copy_` was named, which held 7 % of the launching."""
    trace = draw(
        """
        host main | M0----------------------M1--
        host main | p-------------- q------
        host main | x---y---z---v-- y---z--
        host main | L1  L2  L3  L4  L5  L6
        gpu0 s    |    K1  K2  K3  K4  K5  K6
        """,
        RANGES,
    )
    found = next(row.culprit for row in account(trace).rows if row.cause == "launch")

    assert found is not None
    assert found.name == "## forward ##"


def test_of_a_replayed_graph_the_kernel_is_named_and_not_the_function_that_replays_it():
    sorts = RANGES | {"f": Sort(K.PYTHON_CALL, "model.py(9): __call__")}
    trace = draw(
        """
        host main | M0------------------M1------------------
        host main | f-                  f-
        host main | G1S----------------LG2S----------------L
        gpu0 s    |   V1-----------K1-    V2-----------K2-
        """,
        sorts | {"S": SYNC},
    )
    found = next(row.culprit for row in account(trace).rows if row.cause == "device_compute")

    assert found is not None
    assert (found.name, found.file) == ("attention", None)
