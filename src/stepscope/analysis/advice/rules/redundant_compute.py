"""A step computes results that its update does not depend on."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.items import Row
from stepscope.analysis.advice.rule import Actions, Finding, Named, Op, Rule, actions_for
from stepscope.analysis.advice.rules.device_work import find_work
from stepscope.analysis.advice.rules.memory import describe_room
from stepscope.analysis.advice.rules.words import ONCE, RARELY, SKIP, WORDS_OF_CLASS
from stepscope.analysis.facts.work import USUAL_FORWARD, WorkFacts, split_programs
from stepscope.analysis.purpose.cheaper_ways import COLUMN_TIMES_ROW, DECOMPOSES
from stepscope.analysis.purpose.excess import (
    AFTER,
    BRANCHES,
    CHECKS,
    CONSTANT,
    COPIED,
    DEAD,
    DROPPED,
    EARLIER,
    EMPTY,
    ENCODED,
    EQUAL,
    FACTORING,
    FILTER,
    HALF,
    INVERSE,
    JACOBIAN,
    LIMIT,
    LONGEST,
    MEASURES,
    ONE_BY_ONE,
    ONE_HOT,
    ORDER,
    ORDERING,
    PADDING,
    PAIRS,
    PART,
    PARTLY,
    PICKED,
    PREFIX,
    REPEATED,
    REPEATED_ROWS,
    ROWS_AGAIN,
    TABLE,
    TIMES_ZERO,
    TRANSFORM,
    UNUSED,
    UPDATE,
    ExcessFact,
)
from stepscope.analysis.purpose.tensors import ADDED, SQUARED
from stepscope.vocabulary.python import is_training_function, place_of
from stepscope.vocabulary.traits import OpTrait

_SUSPICIOUS_FORWARD = 1.4  # times the backward work, of which training has twice as much as forward
_MOST_OF = 0.5  # of that work
_NOTHING = (0, "", 0.0, None)
_WITHOUT_BACKWARD = "runs without a backward pass"
_IF_USED = "ignore this if the update uses the result, as that of a teacher or of a target network"

_USUAL_UPDATE = 45.0  # percent of the step: up to so much an update in passes is of programs that are as they should be

_FIXED = "if it computes the same in each step, such as fixed targets: once, before the loop, and keep the result"
_ONCE_OR_RARELY = "Compute what has no backward pass once or rarely, where the step allows it"


def _find_extra(context: Context) -> Finding | None:
    work = context.work
    if context.has_device or not work.steps:
        return None
    extra, what, confidence, program = _find_extra_work(work)
    extra_ms = work.per_step_ms(extra) * work.critical_path_share
    if _is_for_training(context, extra_ms * MS):
        return None
    if program is None and any(line.in_layer and 2 * line.own_ps / MS >= extra_ms for line in context.lines):
        return None  # the layers that follow need it
    change, others_ms = "beside" if program else "extra", _other_functions_ms(context)
    is_forward, of_functions = what == _WITHOUT_BACKWARD, False
    if context.framework == "tensorflow" and others_ms > extra_ms > 0:
        # A function that is left out saves all its work, not only the forward pass.
        change, extra_ms, of_functions = "functions", others_ms, True
    key = program or context.largest_op(OpTrait.MULTIPLIES)
    share = next((module for module in work.modules if module.name == program), None)
    own_ps = share.total_ps / work.steps * work.critical_path_share if share else 0.0
    return Finding(
        part_ms=extra_ms,
        evidence=f"{context.percent(extra_ms):.1f} % of each step {what}",
        change=change,
        without="forward passes that no backward pass follows",
        parts=(f"program {share.name.partition(' (program ')[0]}",) if share else ("extra",),
        op=Op(share.name, 1, own_ps) if share else None,
        # Who computes a metric in a program of its own reads it.
        actions=(RARELY, SKIP, ONCE) if share else (_FIXED, RARELY, SKIP) if is_forward else None,
        title=_ONCE_OR_RARELY if is_forward else "",
        confidence=confidence,
        is_indication=of_functions,  # as those that act in an environment: whether the update needs them is not known
        rows=(Row("op-stats", key, round(extra_ms, 3)),) if key else (),
    )


def _is_for_training(context: Context, ps: float) -> bool:
    """Whether most of some computation is for what is trained on: calls of the model, such as what it draws, or what
    makes a batch; a whole model beside that is a teacher, whose loss may have no weight."""
    used = [line for line in context.lines if line.feeds or (line.is_needed and line.calls_model)]
    own = sum(line.own_ps for line in used if line.calls_model or line.models < _MOST_OF)
    return own >= _MOST_OF * ps > 0


def _other_functions_ms(context: Context) -> float:
    """Time per step of functions whose names do not say training, if another's does."""
    programs = context.loop.programs if context.loop else []
    beside = [program for program in programs if not is_training_function(program.name)]
    if len(beside) == len(programs):
        return 0.0
    return context.per_step_ms(sum(program.total_ps for program in beside))


def _find_extra_work(work: WorkFacts) -> tuple[int, str, float, str | None]:
    """Time, evidence, confidence, and the program that does it; None if it is part of a larger one."""
    if work.forward_only_ps is not None:
        # A teacher or a target network looks the same.  Where it takes more than all that is trained, it comes first.
        if work.backward_ps and 2 * work.forward_only_ps > work.self_ps:
            what = "is spent in forward passes that no backward pass follows, as under torch.no_grad"
            return work.forward_only_ps, f"{what}; {_IF_USED}", 0.5, None
        return _NOTHING
    if work.backward_ps and work.forward_ps > _SUSPICIOUS_FORWARD * work.backward_ps:
        extra = int(work.forward_ps - USUAL_FORWARD * work.backward_ps)
        return extra, _WITHOUT_BACKWARD, 0.5, None
    return _find_other_programs(work)


def _find_other_programs(work: WorkFacts) -> tuple[int, str, float, str | None]:
    """Programs other than the one that trains."""
    main, beside = split_programs(work)
    if main is None or not beside:
        return _NOTHING
    largest = beside[0]
    which = largest.name if len(beside) == 1 else f"{len(beside)} programs (mainly {largest.name})"
    text = f"is spent in {which} besides the training program {main.name}; {_IF_USED}"
    return sum(module.total_ps for module in beside), text, 0.5, largest.name


_RECOMPUTING: Actions = {
    "": (
        "if the memory suffices: take torch.utils.checkpoint from the layers, or from all but the largest",
        "keep what is expensive to compute and small: torch.utils.checkpoint.create_selective_checkpoint_contexts",
        "in 16 bits activations take half of the memory, so that fewer have to be computed again",
    ),
}
_AGAIN = "computing activations again"


def _find_needless_recomputation(context: Context) -> Finding | None:
    """Forward ops that run again within the backward pass while memory is free for what they spare."""
    found = _find_recomputation(context)
    room = describe_room(context) if found is not None else None
    if found is None or room is None:
        return None
    against = "ignore this if the memory does not suffice for keeping them"
    return replace(found, evidence=f"{found.evidence}; {room + '; ' if room else ''}{against}")


def _find_recomputation(context: Context) -> Finding | None:
    """Forward ops that run again within the backward pass."""
    if found := _find_on_device(context):
        return found
    if not context.work.recomputed_ps:
        return None
    time = context.work.per_step_ms(context.work.recomputed_ps)
    return Finding(
        part_ms=time,
        evidence=f"{context.percent(time):.1f} % of each step computes activations again within the backward pass"
        " (activation checkpointing)",
        change="recomputed",
        without=_AGAIN,
        parts=("recomputed",),
        state=_AGAIN,
    )


_find_on_device = find_work(
    "recomputed", "compute activations again within the backward pass (activation checkpointing)", _AGAIN
)


class _Excess(NamedTuple):
    """A kind of work that the account of purpose shows to be unneeded.

    Attributes:
        change: its row of the table of changes; id: of the advice, after `compute.`.
        without: the work, in words that follow "replayed without".
        title, actions: what to do.
        kind: its class; yields_to: see `Rule`.
        unknown: why its gain is not predicted; empty where it is.
        state: see `Advice`; empty where that is `without`.
    """

    change: str
    id: str
    without: str
    title: str
    actions: Actions
    kind: str = "redundant_compute"
    yields_to: tuple[str, ...] = ()
    unknown: str = ""
    state: str = ""

    def find(self, context: Context) -> Finding | None:
        """That work on the host that sets the pace."""
        excess = next((each for each in context.excesses if each.kind == self.change), None)
        if excess is None or (self.change in (MEASURES, AFTER) and _is_for_training(context, excess.step_ps)):
            return None
        percent = context.percent(excess.step_ps / MS)
        if self.change == UPDATE and percent < _USUAL_UPDATE:
            return None  # as of most programs with large layers and small batches: a remark, see `act_on_update`
        name, file, line = place_of(excess.asked_by)
        by = (f"{file}:{line}" if name.startswith("<") else f"{name} ({file}:{line})") if file else ""
        return Finding(
            part_ms=excess.step_ps / MS,
            percent=percent * (1.0 - excess.keeps),
            evidence=f"{percent:.1f} % of each step {excess.fact}; ignore this if {excess.against}",
            change=self.change,
            without=self.without,
            unknown=self.unknown,
            parts=(self.change,),
            culprit=Culprit(name, file, line, None, None, None, excess.step_ps) if by else None,
            title=_TITLES_BY_NAME[self.change].format(by)
            if by and self.change in _TITLES_BY_NAME
            else _SMALLER_TITLE * (SQUARED in excess.fact),
            actions=self._act_on(context, excess, by),
            is_indication=LONGEST in excess.fact,  # as of most programs
            state=self.state or self.without,
        )

    def _act_on(self, context: Context, excess: ExcessFact, by: str) -> tuple[str, ...] | None:
        """What to do, where it is more than is so for all of its kind."""
        if self.change in (FILTER, PARTLY):
            is_second = COLUMN_TIMES_ROW in excess.fact or excess.fact.startswith(DECOMPOSES)
            return actions_for(context.framework, self.actions)[is_second:][:1]
        if self.change in (EQUAL, CONSTANT) and "`" in excess.fact:
            return _name_op(context, self.actions, excess.fact)
        if self.change == ORDER and SQUARED in excess.fact:
            return _SMALLER_SIDE
        if self.change == ORDER and ADDED in excess.fact:
            return actions_for(context.framework, self.actions)[::-1]
        if self.change == ONE_BY_ONE and by:
            return tuple(Named(each.format(by)) for each in actions_for(context.framework, self.actions))
        if self.change == MEASURES and by:
            return actions_for(context.framework, self.actions)[::-1]
        if self.change == PART:
            return tuple(each.format(by) for each in actions_for(context.framework, self.actions))
        if self.change == PADDING:
            actions = actions_for(context.framework, _EQUAL_ROWS if LONGEST in excess.fact else self.actions)
            return tuple(each.replace("the collate function", by) for each in actions) if by else actions
        return None


def _name_op(context: Context, actions: Actions, fact: str) -> tuple[str, ...]:
    """The actions with the op that a fact begins with, in place of "it"."""
    op = fact.split("`")[1]
    return tuple(
        each.replace("compute it once", f"compute `{op}` and what it is made of once", 1)
        for each in actions_for(context.framework, actions)
    )


_ONE_PASS: Actions = {
    "jax": (
        "compute what the losses share once, and value and all gradients in one jitted function: jax.value_and_grad of"
        " the sum of the losses, with argnums=(0, 1, ...)",
    ),
    "tensorflow": (
        "add the losses and ask the tape once, for all variables: tape.gradient(tf.add_n(losses), variables), without"
        " persistent=True",
    ),
    "": ("add the losses and call backward() once: (first + second).backward(), without retain_graph=True",),
}
_NO_GRADIENTS: Actions = {
    "jax": (
        "take gradients of the trained arguments only: jax.value_and_grad(loss, argnums=...), or trained and frozen"
        " parameters as two arguments",
        "or compute gradient and update in one jitted function: XLA drops what nothing takes",
    ),
    "tensorflow": (
        "tape.gradient(loss, variables) with the variables that the optimizer updates; trainable=False for the others",
    ),
    "": (
        "call requires_grad_(False) on parameters that no update changes",
        "if a whole part in front of the trained one is frozen, run it under torch.no_grad()",
    ),
}
_FORGET: Actions = {
    "": (
        "detach what the loop carries from step to step, a running loss or a state: total += loss.item(), or"
        " state = state.detach()",
        "leave out retain_graph=True: what is used again without it raises an error that names the place",
    ),
}
_DETACH: Actions = {
    "": (
        "detach what the trained part takes, as critic(fake.detach()), or make it under torch.no_grad()",
        "if only the gradients of its parameters are not needed: requires_grad_(False) on them for this pass",
    ),
}
_NO_CHECKS: Actions = {
    "tensorflow": ("remove tf.debugging.enable_check_numerics(), or switch it on only to look for a NaN",),
    "jax": ("leave jax_debug_nans and jax_debug_infs off, or switch them on only to look for a NaN",),
    "": ("remove torch.autograd.set_detect_anomaly(True), or switch it on only to look for a NaN",),
}
_BY_NUMBER: Actions = {
    "jax": (
        "take rows of a table by number: table[numbers], instead of jax.nn.one_hot and a product",
        "give a loss the numbers of the classes: optax.softmax_cross_entropy_with_integer_labels",
    ),
    "tensorflow": (
        "take rows of a table by number: tf.gather(table, numbers) or keras.layers.Embedding instead of tf.one_hot",
        "give a loss the numbers of the classes: sparse_categorical_crossentropy",
    ),
    "": (
        "take rows of a table by number: torch.nn.Embedding instead of one_hot and a product",
        "give a loss the numbers of the classes: torch.nn.functional.cross_entropy(logits, labels)",
    ),
}
_FEW_ROWS: Actions = {
    "jax": (
        "differentiate by the rows, not by the table: rows = table[numbers], then table.at[numbers].add(-rate *"
        " gradient), with the table donated to the jitted step",
        "make the table smaller: hash rare entries into fewer rows",
    ),
    "tensorflow": (
        "keep the gradient sparse: table.scatter_sub(tf.IndexedSlices(rate * gradient.values, gradient.indices)), with"
        " SGD for this table alone",
        "make the table smaller: hash rare entries into fewer rows",
    ),
    "": (
        "torch.nn.Embedding(..., sparse=True), with torch.optim.SparseAdam or SGD for this table alone",
        "make the table smaller: hash rare entries into fewer rows",
    ),
}
_DONATE: Actions = {
    "": (
        "donate the argument: jax.jit(step, donate_argnums=...), and use only the returned array after the call",
        "give arrays back only if the step changes them",
    ),
}
_KEEP_OUTPUT: Actions = {
    "jax": (
        "return the value from the training step: jax.value_and_grad(loss, has_aux=True) gives loss and output",
        "measure every N steps instead of in every step, in a program of its own",
    ),
    "": (
        "keep the output of the forward pass that the loss uses, and compare that with the labels",
        "measure every N steps instead of in every step, under torch.no_grad()",
    ),
}

_ALL_AT_ONCE: Actions = {
    "pytorch": (
        "let {} do all rounds of its loop with one op: torch.stack, or pad to one length, and ops with dim=; x[rows],"
        " index_add_, scatter_reduce, groups= of a convolution, torch.nn.EmbeddingBag or torch.vmap",
    ),
    "": (
        "jax.vmap instead of jax.lax.map or jax.lax.scan: one op for all rounds; jax.lax.map(f, xs, batch_size=64)"
        " where memory does not suffice for all",
        "where the order matters: jax.lax.scan(..., unroll=8)",
    ),
}

_SELECT: Actions = {
    "": ("select what is needed without ordering everything: topk, a threshold, indices drawn at random",),
}

_FACTOR_ONCE = (
    "if the matrix is the same in every step, do it once, before the loop, and keep the result; if it changes slowly,"
    " every N steps"
)
_FACTOR_LESS: Actions = {
    "tensorflow": (
        _FACTOR_ONCE,
        "tf.linalg.svd(x, compute_uv=False) gives singular values alone, a few rounds of power iteration the largest"
        " one; tf.linalg.solve replaces an inverse",
    ),
    "jax": (
        _FACTOR_ONCE,
        "jnp.linalg.svd(x, compute_uv=False) gives singular values alone; jax.scipy.linalg.cho_solve or"
        " jnp.linalg.solve replaces an inverse",
    ),
    "": (
        _FACTOR_ONCE,
        "solve instead of an inverse, cholesky where it is positive definite, eigvalsh or svdvals for values alone",
    ),
}
_SOLVE: Actions = {
    "jax": (
        "solve instead of inverting: of a positive definite matrix one factor = jax.scipy.linalg.cho_factor(matrix) for"
        " cho_solve(factor, x) for inv(matrix) @ x, and for its log-determinant, 2 * log(diag(factor[0])).sum()",
        "or jnp.linalg.solve(matrix, x) instead of jnp.linalg.inv(matrix) @ x",
    ),
    "tensorflow": (
        "solve instead of inverting: tf.linalg.cholesky_solve(tf.linalg.cholesky(matrix), x) where it is positive"
        " definite, else tf.linalg.solve(matrix, x)",
    ),
    "": (
        "solve instead of inverting: torch.cholesky_solve(x, torch.linalg.cholesky(matrix)) where it is positive"
        " definite, else torch.linalg.solve(matrix, x)",
    ),
}
_ONE_DIRECTION: Actions = {
    "jax": (
        "one direction is one pass: jax.jvp(f, (x,), (v,))[1] for J @ v, jax.vjp(f, x)[1](u) for u @ J; of a Hessian"
        " jax.jvp(jax.grad(f), (x,), (v,))[1]",
        "a trace, or a sum of squares: v @ J @ v, or the square of J @ v, for random v of ones and minus ones has it as"
        " its mean",
    ),
    "tensorflow": (
        "one direction is one pass: tf.autodiff.ForwardAccumulator(x, v) for J @ v, tape.gradient(y, x,"
        " output_gradients=u) for u @ J",
        "a trace: v @ J @ v for random v of ones and minus ones has it as its mean",
    ),
    "": (
        "one direction is one pass: torch.func.jvp(f, (x,), (v,)) for J @ v, torch.func.vjp(f, x)[1](u) for u @ J",
        "a trace: v @ J @ v for random v of ones and minus ones has it as its mean",
        "all rows at once instead of a loop: torch.func.jacrev(f)(x), in torch.func.vmap for a batch",
    ),
}
_IN_32_BITS: Actions = {
    "tensorflow": (
        "train in float32 on a CPU: leave out keras.mixed_precision.set_global_policy('mixed_float16')",
        "or 'mixed_bfloat16', where the processor has instructions for that (avx512_bf16, amx_bf16)",
    ),
    "": (
        "train in float32 on a CPU: no .half(), and no autocast to float16",
        "or bfloat16, where the processor has instructions for that (avx512_bf16, amx_bf16)",
    ),
}
_AS_PRODUCT: Actions = {
    "pytorch": (
        "differences: torch.cdist(x, y), or x.square().sum(1)[:, None] + y.square().sum(1) - 2 * x @ y.T",
        "products that are summed: x @ y.T, or torch.einsum",
    ),
    "": (
        "write it as a product of matrices: x @ y.T for sums of products, (x**2).sum(-1)[:, None] - 2 * x @ y.T +"
        " (y**2).sum(-1) for squared distances",
    ),
}

_IN_TENSORS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    PICKED: (
        "computing what is not taken",
        "Compute only the part that is taken",
        (
            "take first, then compute: head(h[:, -1]) instead of head(h)[:, -1]; of a picture or series that is cut"
            " afterwards that part of the input, with as much around it as the filters reach; of labels that a loss"
            " ignores keep = labels != -100, head(h[keep]) and labels[keep]",
        ),
    ),
    REPEATED_ROWS: (
        "computing equal rows again",
        "Compute each row once, and repeat the result",
        ("call the layer first and repeat or expand its result, or let broadcasting do it",),
    ),
    ORDER: (
        "the longer order of products",
        "Multiply in the other order",
        (
            "A @ (B @ x) instead of (A @ B) @ x; torch.linalg.multi_dot finds the order",
            "with a sum: W @ x + A @ (B @ x) instead of (W + A @ B) @ x, so that A @ B is never made, nor its gradient",
        ),
    ),
    DEAD: (
        "what no loss is computed from",
        "Leave out computation that no loss is computed from",
        ("skip this part of the model where its output is not used, or run it rarely, under torch.no_grad()",),
    ),
    EMPTY: (
        "multiplying with zeros",
        "Multiply with the numbers that are not zero alone",
        (
            "keep the matrix sparse: matrix.to_sparse_csr() once, before the loop, then torch.sparse.mm(matrix, x)",
            "or take the rows of each entry and add them up: out.index_add_(0, rows, values[:, None] * x[columns])",
        ),
    ),
    PREFIX: (
        "computing positions again",
        "Keep the state of earlier positions instead of computing them again",
        (
            "pass the hidden state on (`out, state = gru(newest, state)`), or keep keys and values of attention, and"
            " compute the newest position alone: generate(..., use_cache=True) of transformers",
        ),
    ),
    ENCODED: (
        "encoding the same again",
        "Encode once per sequence, not for each position",
        (
            "call the encoder once, before the loop over positions, and give its result to the decoder in each round",
            "keep keys and values that attention makes of it, too",
        ),
    ),
    EQUAL: (
        "computing the same again",
        "Compute once per step what is computed again from the same tensors",
        (
            "compute it once per step, before the loop or the layers that need it, and pass the result on; of weights"
            " with a parametrization: `with torch.nn.utils.parametrize.cached():` around the forward pass",
        ),
    ),
    CONSTANT: (
        "computing what never changes",
        "Compute once what is the same in every step",
        ("compute it once, before the loop, and keep the result (register_buffer in a module)",),
    ),
}

_IN_PROGRAMS: dict[str, Actions] = {
    CONSTANT: {
        "jax": (
            "compute it once, before the loop, in a jitted function of its own, and give the result to the step as an"
            " argument",
        ),
    },
    EMPTY: {
        "jax": (
            "keep the numbers that are not zero, with their rows and columns: out.at[rows].add(values[:, None] *"
            " x[columns]), or jax.ops.segment_sum",
            "or jax.experimental.sparse.BCOO.fromdense(matrix) once, before the loop, and matrix @ x",
        ),
        "tensorflow": (
            "keep the matrix sparse: tf.sparse.from_dense(matrix) once, before the loop, then"
            " tf.sparse.sparse_dense_matmul(matrix, x)",
            "or take the rows of each entry and add them up: tf.math.unsorted_segment_sum",
        ),
    },
    ORDER: {
        "jax": (
            "A @ (B @ x) instead of (A @ B) @ x: jnp.linalg.multi_dot, or jnp.einsum(..., optimize='optimal')",
            "with a sum: W @ x + A @ (B @ x) instead of (W + A @ B) @ x, so that A @ B is never made, nor its gradient",
        ),
    },
}

_SMALLER_TITLE = "Multiply squares of the smaller side of matrices"
_SMALLER_SIDE = (
    "a matrix with more rows than columns: transpose it before and after, so that x @ x.T is of its smaller side (as"
    " Newton-Schulz does in Muon: if x.size(0) > x.size(1): x = x.T), which gives the same",
)
_TITLES_BY_NAME = {
    CONSTANT: "Compute once what is the same in every step, at {}",
    LIMIT: "Let the loop end when it has converged, at {}",
    TIMES_ZERO: "Leave out what is multiplied by zero at {}",
    BRANCHES: "Do not compute both branches for all rows, at {}",
    PART: "Make {} cheaper: it takes most of the step and computes no layer",
    ONE_BY_ONE: "Compute all rounds of the loop in {} at once",
    MEASURES: "Run the model every few steps for what is only reported, at {}",
}
_ONE_BRANCH: Actions = {
    "": (
        "take the condition of the whole batch out of jax.vmap: jax.lax.cond(jnp.any(need), compute for all rows, keep"
        " all), so that steps in which no row needs the branch skip it",
        "or compute the costly branch for few rows: of those that need it (jnp.nonzero(need, size=k)), or ahead, as a"
        " pool of results from which each row takes one",
        "or jax.lax.map instead of jax.vmap, where a row takes long: it runs one branch for each",
    ),
}
_NOT_TIMES_ZERO: Actions = {
    "": (
        "differentiate by what is trained alone: jax.grad(loss, argnums=...) with trained and frozen parameters as two"
        " arguments, or jax.lax.stop_gradient on what is frozen; a mask of zeros on its gradients saves no work",
        "a term of the loss whose weight is zero: leave it out in Python (if weight:), before the function is traced",
    ),
}
_CONVERGE: Actions = {
    "": (
        "set a tolerance that the numbers can reach: float32 tells about 1e-7 of a value apart, so compare the change"
        " with the size of the value (change > 1e-4 * size)",
        "start from the result of the step before, and print the rounds and the last error once, to see what limits it",
    ),
}
_CHEAPER_PART: Actions = {
    "jax": (
        "compute less in {}: write the rows that change alone (x.at[rows].set(values)), or give them out of the scan"
        " and join them after it; products of matrices (@, einsum) instead of wide elementwise ops",
        "what in it depends on no parameter, such as anything made of targets or positions alone: once, before the"
        " loop",
    ),
    "tensorflow": (
        "compute less in {}: products of matrices (tf.matmul, tf.einsum) instead of wide elementwise ops, on fewer"
        " pairs, positions or scales, or by an op that does it as a whole",
        "what in it depends on no variable, such as anything made of targets or positions alone: once, in the dataset,"
        " or before the loop",
    ),
    "": (
        "compute less in {}: at a lower resolution, on fewer pairs, positions or scales, by products of matrices"
        " instead of wide elementwise ops, or by an op of the framework that does it as a whole",
        "what in it depends on no prediction, such as anything made of targets or positions alone: once, before the"
        " loop, under torch.no_grad()",
    ),
}

_SHORTER_BATCHES: Actions = {
    "jax": (
        "fill each batch up to the shortest of a few lengths that holds its longest row, such as 32, 64, 128: each"
        " length compiles once",
        "and put rows of about equal length into one batch: sort or bucket them by length",
        "or join several short rows into one (packing), with a mask that keeps them apart",
    ),
    "tensorflow": (
        "fill each batch up to its own longest row, not to one length for all: padded_batch(n, padded_shapes=([None],"
        " [])), with None in the input_signature of a tf.function",
        "and put rows of about equal length into one batch: dataset.bucket_by_sequence_length",
        "or join several short rows into one (packing), with a mask that keeps them apart",
    ),
    "": (
        "fill each batch up to its own longest row, not to one length for all, in the collate function:"
        " torch.nn.utils.rnn.pad_sequence, or padding='longest' of a tokenizer",
        "and put rows of about equal length into one batch: sort or bucket them by length in the batch sampler",
        "or join several short rows into one (packing), with a mask that keeps them apart",
    ),
}
_EQUAL_ROWS: Actions = {
    "": (
        "put rows of about equal length into one batch: sort or bucket them by length in the batch sampler",
        _SHORTER_BATCHES[""][2],
    ),
}

_FAST_LENGTH: Actions = {
    "jax": (
        "pad to a length of small factors, which for a convolution gives the same: jnp.fft.rfft(x, n=fast), fast ="
        " scipy.fft.next_fast_len(n), or the next power of two",
    ),
    "": (
        "pad to a length of small factors, which for a convolution gives the same: torch.fft.rfft(x, n=fast), fast ="
        " scipy.fft.next_fast_len(n), or the next power of two",
    ),
}

_SHORTER_FILTERS: Actions = {
    "": (
        "of a filter over one axis: torch.fft.rfft of both, padded to one length, their product, torch.fft.irfft"
        " (torchaudio.functional.fftconvolve)",
        "of a filter over two axes that is a column times a row, as a Gaussian or a mean: one conv2d with the column,"
        " one with the row; or blur a smaller picture",
    ),
}
_TAKE_PART: Actions = {
    "": (
        "of an order: torch.topk, torch.kthvalue and a threshold, or torch.randint for a few rows at random",
        "of a decomposition: the largest value by a few rounds of power iteration (u = W @ v, v = W.T @ u, each divided"
        " by its norm), or torch.svd_lowrank and torch.lobpcg for a few",
    ),
}
_ONE_PASS_UPDATE: Actions = {
    "": (
        "torch.optim.AdamW(..., fused=True), and so for Adam, SGD and Adagrad: one op goes over each parameter once",
        "or update more rarely: larger batches, or gradients of several batches added up",
    ),
}
_KEEP_ROWS: Actions = {
    "": (
        "compute it for all rows once, before the loop, under torch.no_grad() and in batches, keep the result, and take"
        " the rows of that: features = encode(data), then features[rows]",
    ),
}


def act_on_update(context: Context) -> tuple[str, ...]:
    """What to do about an update in several passes that is a usual part of the step, beside that nothing stands out."""
    excess = next((each for each in context.excesses if each.kind == UPDATE), None)
    if excess is None:
        return ()
    percent = context.percent(excess.step_ps / MS)
    return (f"{percent:.0f} % of the step {excess.fact}: {_ONE_PASS_UPDATE[''][0].partition(':')[0]}",)


_EXCESSES = (
    _Excess(
        REPEATED, "repeated-backward", "the repeated backward passes",
        "Compute all gradients in one pass", _ONE_PASS,
    ),
    _Excess(
        EARLIER, "earlier-steps", "the backward passes of earlier steps",
        "Do not go back through earlier steps", _FORGET,
    ),
    _Excess(
        UNUSED, "unused-gradients", "gradients that no update uses",
        "Compute no gradients for parameters that are not trained", _NO_GRADIENTS,
    ),
    _Excess(
        DROPPED, "dropped-gradients", "gradients that begin anew before an update reads them",
        "Stop the backward pass where gradients are not used", _DETACH,
    ),
    _Excess(CHECKS, "checks", "the checks for NaN", "Turn checks for NaN off", _NO_CHECKS),
    _Excess(
        ONE_HOT, "one-hot", "writing and reading the one-hot rows",
        "Use the numbers of classes instead of one-hot rows", _BY_NUMBER,
    ),
    _Excess(
        TABLE, "whole-table", "updating rows that the step does not read",
        "Update only the rows of the table that a step reads", _FEW_ROWS,
    ),
    _Excess(
        COPIED, "copied-arguments", "copying whole arguments", "Donate arrays that the step replaces", _DONATE,
        kind="memory_churn",
    ),
    _Excess(
        ONE_BY_ONE, "one-by-one", "rounds one after another",
        "Compute all rounds of the loop at once", _ALL_AT_ONCE, kind="small_batch",
        unknown="it does not show how long one op for all rounds takes",
    ),
    _Excess(
        ORDERING, "ordering", "putting arrays in order", "Check whether everything has to be sorted", _SELECT,
        unknown="it does not show how many of the rows are taken",
    ),
    _Excess(
        FACTORING, "factoring", "decomposing matrices", "Take matrices apart once, not in every step", _FACTOR_LESS,
        unknown="it does not show whether the matrices change, nor what of the result is used",
    ),
    _Excess(
        INVERSE, "inverse", "the inverse", "Solve with the matrix instead of inverting it", _SOLVE,
        state="inverting a matrix",
        unknown="it does not show what of the inverse is used",
    ),
    _Excess(
        JACOBIAN, "jacobian", "all rows of the Jacobian but one", "Differentiate in one direction, not in all",
        _ONE_DIRECTION, state="a whole Jacobian",
    ),
    _Excess(
        HALF, "half", "products in float16", "Compute in 32 bits on a CPU", _IN_32_BITS, kind="low_precision",
        unknown="it does not show how long they take in 32 bits",
    ),
    _Excess(PAIRS, "spread-pairs", "the array of all pairs", "Compute all pairs by a product of matrices", _AS_PRODUCT),
    _Excess(
        BRANCHES, "both-branches", "the branches", "Do not compute both branches for all rows", _ONE_BRANCH,
        unknown="it does not show how many rows need each branch",
    ),
    _Excess(
        TIMES_ZERO, "times-zero", "what is multiplied by zero", "Leave out what is multiplied by zero", _NOT_TIMES_ZERO,
    ),
    _Excess(
        LIMIT, "loop-limit", "those rounds", "Let the loop end when it has converged", _CONVERGE,
        unknown="it does not show how many rounds are enough",
        state="a loop that only its limit ends",
    ),
    _Excess(
        PART, "part-without-layers", "that part",
        "Make the part of the step cheaper that trains nothing itself", _CHEAPER_PART,
        yields_to=("redundant_compute", "small_batch", "low_precision", "eager_dispatch", "host_sync"),
        unknown="it does not show how much cheaper it can be",
        state="a part that trains nothing itself",
    ),
    _Excess(
        PADDING, "padding", "what fills batches up", "Compute less padding", _SHORTER_BATCHES,
        state="batches with padding",
    ),
    _Excess(
        TRANSFORM, "slow-transform", "what a fast length spares",
        "Transform lengths without large prime factors", _FAST_LENGTH,
        state="Fourier transforms of a slow length",
    ),
    _Excess(
        FILTER, "long-filter", "those convolutions", "Convolve with long filters in another way", _SHORTER_FILTERS,
        unknown="it does not show how long the other way takes",
    ),
    _Excess(
        PARTLY, "partly-taken", "what is not taken", "Select what is taken, instead of ordering or decomposing all",
        _TAKE_PART, unknown="it does not show how long selecting takes",
    ),
    _Excess(UPDATE, "update-in-passes", "the passes but one", "Update each parameter in one pass", _ONE_PASS_UPDATE),
    _Excess(ROWS_AGAIN, "rows-encoded-again", "those layers", "Compute what never changes for a row once", _KEEP_ROWS),
    _Excess(
        MEASURES, "measures", "running the model again for a metric",
        "Take the metric from the output that is trained on", _KEEP_OUTPUT, yields_to=("straggler",),
    ),
    *(
        _Excess(kind, kind.replace("_", "-"), without, title, {"": actions, **_IN_PROGRAMS.get(kind, {})})
        for kind, (without, title, actions) in _IN_TENSORS.items()
    ),
    _Excess(
        AFTER, "after-update", "forward passes after the update",
        "Skip computation if the update does not use its result", WORDS_OF_CLASS["redundant_compute"].actions,
        yields_to=("straggler",),
    ),
)  # fmt: skip

RULES = (
    *(
        Rule(
            f"compute.{each.id}", kind=each.kind, title=each.title, find=each.find, actions=each.actions,
            tool="op-stats", yields_to=each.yields_to,
        )
        for each in _EXCESSES
    ),
    Rule(
        "compute.redundant", kind="redundant_compute", find=_find_extra, tool="op-stats",
        actions=WORDS_OF_CLASS["redundant_compute"].actions,
        title="Skip computation if the update does not use its result",
        yields_to=(
            "straggler", "memory_churn", "eager_dispatch", "host_sync", "recompilation", "small_batch",
            "redundant_compute",
        ),
    ),
    Rule(
        "compute.recomputed", 10.0, kind="redundant_compute", title="Recompute fewer activations",
        find=_find_needless_recomputation, actions=_RECOMPUTING, tool="op-stats", confidence=0.7,
        yields_to=("eager_dispatch", "small_batch", "straggler"),
    ),
)  # fmt: skip
