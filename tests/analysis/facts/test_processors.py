"""What threads take of processors that are too few for all of them."""

from dataclasses import replace

import pytest

from stepscope.analysis.account.predict import Predicted
from stepscope.analysis.advice.ranking import advise
from stepscope.analysis.facts import processors
from stepscope.analysis.facts.processors import Processors, processors_of
from stepscope.analysis.trace.program_facts import OpThreads
from stepscope.model import EventKind as K
from stepscope.model import HostTrace
from tests.helpers.draw import SORTS, Sort, draw
from tests.helpers.reporting import context_of


def beside(made: str) -> HostTrace:
    """Steps that wait for nothing, while a thread of the input works in each."""
    sorts = SORTS | {"y": Sort(K.ITERATOR, "Iterator::Root::Prefetch::Map"), "q": Sort(K.OP, "jitter/Pow:Pow")}
    return draw(
        f"""
        host main         | M0--------M1--------M2--------M3--------
        host main         | F-------- F-------- F-------- F--------
        host main         | m-------- m-------- m-------- m--------
        host tf_data_pool | y{made[1:]} y{made[1:]} y{made[1:]} y{made[1:]}
        host tf_data_pool | {made} {made} {made} {made}
        """,
        sorts,
    )


def record(monkeypatch: pytest.MonkeyPatch, used: float | None, cores: int | None) -> None:
    """What the capture counted of the processors."""
    monkeypatch.setattr(processors, "cores_used", lambda trace: used)
    monkeypatch.setattr(processors, "op_threads_of", lambda trace: OpThreads(cores, None))


def test_input_beside_the_step_takes_its_share_of_the_only_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    record(monkeypatch, 0.99, 1)

    held = processors_of(beside("q--------"))

    assert held is not None
    assert (held.cores, held.used) == (1, 0.99)
    assert held.is_large(held.input_ps)


@pytest.mark.parametrize(
    ("used", "cores"),
    [
        pytest.param(1.9, 2, id="each thread had a processor"),
        pytest.param(0.99, 2, id="one is free all the time"),
        pytest.param(None, 1, id="not counted"),
        pytest.param(0.99, None, id="their number is not known"),
    ],
)
def test_nothing_is_said_where_processors_suffice(
    monkeypatch: pytest.MonkeyPatch, used: float | None, cores: int | None
) -> None:
    record(monkeypatch, used, cores)

    assert processors_of(beside("q--------")) is None


def test_a_step_is_shorter_by_the_share_of_the_processors_and_no_less_than_by_its_critical_path() -> None:
    held = Processors(cores=2, used=2.0, work_ps=400.0, input_ps=160.0)

    then = held.predict_without(Predicted(100, 95, 0, 100, {}, (), {}), held.input_ps)

    assert (then.then_ps, then.least_ps, then.most_ps, then.of_processors) == (60, 0, 95, 0.4)
    assert then.reasons == ("the program's threads compete for 2 processors, of which they had 2.0",)


@pytest.mark.parametrize(("ps", "then_ps"), [(60.0, 95), (160.0, 50)], ids=["little work", "the critical path gains"])
def test_other_forecasts_stay(ps: float, then_ps: int) -> None:
    held, found = Processors(2, 2.0, 400.0, ps), Predicted(100, then_ps, 0, 100, {}, (), {})

    assert held.predict_without(found, ps) is found


def test_the_advice_and_the_verdict_say_what_takes_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    record(monkeypatch, 0.99, 1)

    advised = advise(context_of(beside("q--------")))

    first = advised.items[0]
    assert (first.id, first.kind) == ("input.crowds", "input_preprocessing")
    assert advised.verdict.sentence.startswith("input-bound: threads compete for the processors, ")


def test_elements_that_are_made_and_passed_over_are_the_first_thing_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    record(monkeypatch, 0.99, 1)
    context = context_of(beside("q--------"))
    feed = replace(context.pace.feed, skipped_by="FiniteSkip", skipped=17, made_below=27)

    first = advise(replace(context, hosts=[replace(context.pace, feed=feed)])).items[0]

    assert first.id == "input.crowds"
    assert first.actions[0].startswith(
        ".skip() passes over 17 of 27 elements that are made before it: keep one iterator"
    )


def test_little_input_beside_the_step_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    record(monkeypatch, 0.99, 1)

    advised = advise(context_of(beside("q-       ")))

    assert advised.items[0].id != "input.crowds"
