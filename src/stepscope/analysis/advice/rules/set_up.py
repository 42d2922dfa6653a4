"""A step makes something anew that could be made once, before the loop."""

from __future__ import annotations

from typing import NamedTuple

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.rule import Actions, Finding, Rule, actions_for
from stepscope.analysis.purpose.excess import SET_UP


class _Words(NamedTuple):
    """What is said of something that is made anew: its class, title and actions, with the name of the call."""

    kind: str
    title: str
    actions: Actions


_WORDS = {
    "loader": _Words(
        "input_preprocessing", "Start the loader's iterator once, not in each step",
        {
            "": (
                "`for batch in loader:` goes on where it was; next(iter(loader)) begins a new epoch for each batch",
                "where the number of steps is given: batches = iter(loader) before the loop, next(batches) in it, and a"
                " new iterator at StopIteration",
            )
        },
    ),
    "pipeline": _Words(
        "python_overhead", "Build the tf.data pipeline and its iterator once, before the loop",
        {
            "": (
                "make the dataset before the loop, and go through it: `for batch in dataset:`",
                "where the number of steps is given: batches = iter(dataset.repeat()) before the loop, next(batches)"
                " in it",
            )
        },
    ),
    "fit": _Words(
        "python_overhead", "Do not call `{}` for each batch: it sets up a pipeline every time",
        {
            "": (
                "call what sets up nothing: train_on_batch, test_on_batch, predict_on_batch, or model(x,"
                " training=False)",
                "where no batch needs the result of the one before, give it all of them in one call: a generator, a"
                " tf.data.Dataset or a PyDataset, with steps_per_epoch where they have no end",
            )
        },
    ),
    "optimizer": _Words(
        "python_overhead", "Make the optimizer once, before the loop",
        {
            "": (
                "make it before the loop; new parameters: optimizer.add_param_group",
                "another rate in each step: a schedule, or param_group['lr'] = rate",
            ),
            "tensorflow": ("make it before the loop; another rate in each step: optimizer.learning_rate.assign(rate)",),
        },
    ),
    "module": _Words(
        "python_overhead", "Make the layers once, before the loop",
        {"": ("make them in __init__ of the model, or before the loop, and call them in the step",)},
    ),
    "walk": _Words(
        "python_overhead", "Take the module apart once, not around each call of the compiled step",
        {
            "": (
                "bind the modules once, before the loop: step = nnx.cached_partial(train_step, model, optimizer), then"
                " step(batch)",
                "or keep their arrays: graphdef, state = nnx.split((model, optimizer)) before the loop, jax.jit with"
                " nnx.merge inside, and give the new state from call to call",
                "fewer parts are walked faster: layers that are alike as one, by nnx.vmap and nnx.scan",
            )
        },
    ),
    "threads": _Words(
        "python_overhead", "Start threads and processes once, before the loop",
        {
            "": (
                "make the pool before the loop and give it work in each step: pool.submit(...), pool.map(...)",
                "loaders of PyTorch keep theirs with persistent_workers=True",
            )
        },
    ),
}  # fmt: skip


def _find_set_up(context: Context) -> Finding | None:
    excess = next((each for each in context.excesses if each.kind == SET_UP), None)
    if excess is None:
        return None
    what, name = excess.made
    words, unless = _WORDS[what], f"; ignore this if {excess.against}" if excess.against else ""
    percent = context.percent(excess.step_ps / MS)
    return Finding(
        part_ms=excess.step_ps / MS,
        percent=percent,
        id=f"set-up.{what}",
        kind=words.kind,
        title=words.title.format(name),
        evidence=f"{percent:.1f} % of each step {excess.fact}{unless}",
        change=SET_UP,
        without="making it anew",
        parts=(SET_UP,),
        actions=actions_for(context.framework, words.actions),
    )


RULES = (Rule("set-up", find=_find_set_up, tool="critical-path", confidence=0.8),)
