"""PyTorch: ops named `aten::mm`, autograd nodes, loaders, the phases of torch.compile, and its own Python files."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stepscope.model import EventKind, Trait
from stepscope.vocabulary import user_ranges
from stepscope.vocabulary.collectives import HOST_CALLS, KERNELS
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.tables import KindRule, NameTable
from stepscope.vocabulary.traits import CallTrait, InputTrait, LayerTrait, OpTrait, PurposeTrait, RangeTrait

K = EventKind

_MOST_DIGITS = 18
_STEP_MARK = Pattern(r"ProfilerStep#(\d+)$")
MEMORY_NAME = "[memory]"
HALF = "c10::Half"  # float16, as operands of that type are called
DISPATCH_MODES = ("PythonDispatchMode", "PythonSubclass")
"""Frames in which PyTorch's dispatcher asks Python: a TorchDispatchMode, or a subclass of tensors."""
MODULE_PREFIX = "nn.Module: "
ENGINE_THREAD = "pt_autograd_"
"""How names of threads begin on which autograd runs a backward pass for the thread that asked for it."""
LIFTS_VALUES = "aten::lift_fresh"
RECOMPUTES = tuple(f"{prefix}CheckpointFunctionBackward" for prefix in ("", "autograd::engine::evaluate_function: "))
"""The names that show recomputation of activations."""
_JACOBIAN = Pattern(
    r".*(?:_functorch/eager_transforms\.py\(\d+\): (?:compute_jacobian_\w+|push_jvp)"
    r"|autograd/functional\.py\(\d+\): (?:jacobian|hessian))$"
)
_WRAPPERS = (("ddp", "DistributedDataParallel.forward"), ("fsdp", "FullyShardedDataParallel"), ("fsdp", "FSDP::"))
ONLY_HERE = Pattern(rb"aten::|ProfilerStep#")
"""In names that only this framework writes."""

_BACKWARD_PREFIX = "autograd::engine::evaluate_function: "
_OP_PREFIX = "aten::"
# The phases of torch.compile.  Each is recorded as a plain op, as the timed function, and as an annotation with its
# data.  Running compiled code ("Torch-Compiled Region", "CompiledFxGraph") is not compilation.
_COMPILE = (
    r".* \(dynamo_timed\)$"
    r"|\S+_data: (?:.*, )?compile_id="
    r"|(?:dynamo|entire_(?:frame|backward)_compile|(?:inductor|backend)_compile|bytecode_tracing|compile_attempt_\d+"
    r"|compile_file|code_gen|build_guards|fx_codegen_and_compile|create_aot_dispatcher_function|aot_[a-z]\w+"
    r"|_recursive_\w+_passes|async_compile\.wait|GraphLowering\.\w+|compile_fx\S*|_compile\.\w+)$"
    r"|(?i:triton\W?(?:jit)?\W?compile)"
)
_CHECKPOINT = (
    r"(?i:.*\b(?:save|write|load|restore)[ _.:-]*(?:the )?(?:ckpt|checkpoint|model|state|snapshot|weights)"
    r"|.*\b(?:ckpt|checkpoint|model|state_dict|snapshot|weights)[ _.:-]*(?:sav|writ|load|restor)"
    r"|.*\btorch[.:]+(?:save|load)\b)"
)
_FRAMES = (
    r"Optimizer\.(?:step|zero_grad)#|(?:Distributed)?DataParallel\.forward$|FullyShardedDataParallel"
    r"|Torch-Compiled Region|TorchDynamo Cache Lookup|Pregraph bytecode|AOTDispatcher Runtime|## |\[pl\]"
)
STEP_KINDS: tuple[KindRule, ...] = ((r"ProfilerStep#\d+$", K.STEP_MARK, Trait.NONE),)
_MARKS: tuple[KindRule, ...] = (
    *STEP_KINDS,
    (r"enumerate\(DataLoader\)#", K.INPUT_WAIT, Trait.NONE),
    (r"enumerate\(DataPipe\)#", K.ITERATOR, Trait.NONE),
    *HOST_CALLS,
    (_COMPILE, K.COMPILE, Trait.COMPILES),
)
OP_KINDS: tuple[KindRule, ...] = (
    (re.escape(_BACKWARD_PREFIX), K.BACKWARD, Trait.NONE),
    *_MARKS,
    (_FRAMES, K.ANNOTATION, Trait.NONE),
    (r"", K.OP, Trait.NONE),
)
ANNOTATION_KINDS: tuple[KindRule, ...] = (
    *_MARKS,
    (_CHECKPOINT, K.CHECKPOINT, Trait.NONE),
    *user_ranges.KINDS,
    (r"", K.ANNOTATION, Trait.NONE),
)
PYTHON_KINDS: tuple[KindRule, ...] = (
    (r"(?:.*/)?torch/serialization\.py\(\d+\): (?:save|load)$", K.CHECKPOINT, Trait.NONE),
    (r"(?:.*/)?torch/distributed/checkpoint/state_dict_\w+\.py\(\d+\): (?:async_)?(?:save|load)$",
     K.CHECKPOINT, Trait.NONE),
    (r"(?:.*/)?(?:torch/_dynamo/convert_frame\.py\(\d+\): _compile|torch/_inductor/compile_fx\.py\(\d+\): compile_fx\w*"
     r"|triton/compiler/compiler\.py\(\d+\): compile)$", K.PYTHON_CALL, Trait.COMPILES),
    (r"", K.PYTHON_CALL, Trait.NONE),
)  # fmt: skip
KERNEL_KINDS: tuple[KindRule, ...] = (*KERNELS, (r"", K.KERNEL, Trait.NONE))
OTHER_KINDS: tuple[KindRule, ...] = (
    (re.escape(MEMORY_NAME), K.ALLOCATION, Trait.NONE),
    *_MARKS,
    (r"", K.OTHER, Trait.NONE),
)
WINDOW_END = "Record Window End"
WINDOW_MARKS = ("Iteration Start: ", WINDOW_END)
"""They repeat the bounds of the profiler's span; the second is often wrong by a tenth of a second or more."""

_UPDATE = "Optimizer.step#"
COMPILED_REGION = "Torch-Compiled Region"  # how the name of a call of compiled code begins
_UPDATES = Pattern(r"(?i)\boptim(?:izer)?\b")
_DATAPIPE_READS = Pattern(r"#\w*(?:File|Open|Read|Load|Stream|Http|Online)")


def step_number(mark: str) -> int:
    """The number in a step mark, cut to its last digits if it does not fit into 64 bits; 0 for other names.

    >>> step_number("ProfilerStep#12")
    12
    """
    found = _STEP_MARK.match(mark)
    return int(found[1][-_MOST_DIGITS:]) if found else 0


def _is_aten(name: str) -> bool:
    return name.startswith(_OP_PREFIX)


NAMES: tuple[NameTable, ...] = (
    NameTable(
        applies=_is_aten,
        key=lambda name: name[len(_OP_PREFIX) :],
        rules=(
            (
                OpTrait.MOVES_DATA,
                r"(?:cat|clone|copy_|roll|stack|fill_|zero_|repeat|flip|contiguous|constant_pad_nd|_index_put_impl_"
                r"|index_put_|slice_scatter|index_copy_|resize_|tile|expand_copy|masked_scatter_)$",
            ),
            (OpTrait.CONVERTS, r"(?:to|_to_copy)$"),
            (OpTrait.SOFTMAX, r"_softmax(?:_backward_data)?$"),
            (OpTrait.BATCHED_PRODUCT, r"(?:bmm|baddbmm)$"),
            (
                OpTrait.MULTIPLIES,
                r"(?:(?:add|ba?dd?)?b?mm|addmv|mv|dot|linear|_?conv\w*|mkldnn_\w+|thnn_\w+|_scaled_dot\w+|einsum|matmul"
                r"|baddbmm|_?linalg_(?!\w*norm\b|cross\b|diagonal\b|vecdot\b)\w+|cholesky\w*|lu_\w+"
                r"|(?:cudnn|miopen)_convolution_backward$)",
            ),
            (OpTrait.FIRST_OF_STEP, r"(?:linear|addmm|mm|bmm|matmul|conv\w*|embedding|_scaled_dot\w+)$"),
            (
                OpTrait.MAKES_RESULT,
                r"(?:mul|add|sub|rsub|div|true_divide|lerp|neg|where|clamp|pow|sqrt|exp|abs|addcmul|addcdiv)$",
            ),
            (OpTrait.MAKES_TENSOR, r"(?:empty\w*|lift_fresh|detach_?|to|_to_copy|copy_)$"),
            (OpTrait.LIFTS_VALUES, r"lift_fresh$"),
            (OpTrait.DETACHES, r"detach$"),
            (OpTrait.DETACHES_IN_PLACE, r"detach_$"),
            (OpTrait.SETS_STORAGE, r"set_$"),
            (OpTrait.COPIES_OUT, r"(?:to|resolve_conj|resolve_neg|alias|cpu)$"),
            (OpTrait.COMPARES_VALUES, r"(?:equal|allclose)$"),
            (
                OpTrait.IS_RANDOM,
                r"(?:rand(?:n|int)?(?:_like)?|randperm|(?:log_)?normal_?|uniform_?|random_?|bernoulli_?|exponential_"
                r"|cauchy_|geometric_|poisson|multinomial)$",
            ),
            (
                OpTrait.SIZED_BY_DATA,
                r"(?:nonzero\w*|masked_select|_?unique\w*|repeat_interleave|bincount|index|where)$",
            ),
            # `cudnn_is_acceptable` asks whether it could, on CPUs too.
            # Plain tensors have `linear_backward` on Apple's GPUs alone; elsewhere it is a product of matrices.
            (
                OpTrait.OF_DEVICE_LIBRARY,
                r"(?:_?(?:cudnn|miopen)_(?!is_acceptable)\w+|_?mps_\w+|_?lstm_mps\w*|linear_backward|_?npu_\w+)$",
            ),
            (OpTrait.COPIES_AND_WAITS, r"(?:to|_to_copy|copy_|_to_cpu|cpu)$"),
            (OpTrait.ONLY_ALLOCATES, r"(?:empty|new_empty)"),  # their callers need the memory
            (PurposeTrait.ADDS_IN_PLACE, r"add_$"),
            (PurposeTrait.CHECKS_NUMBERS, r"(?:isnan|isinf|isfinite)$"),
            (PurposeTrait.ANSWERS_CHECK, r"(?:_is_any_true|any|item|is_nonzero)$"),
            (PurposeTrait.IS_LOSS, r"(?!.*backward)(?:\w*_loss\w*|\w*cross_entropy\w*|kl_div)$"),
            (PurposeTrait.PICKS_CLASS, r"(?:argmax|max|topk)$"),
            (PurposeTrait.COMPARES_LABELS, r"(?:eq|ne)$"),
            (PurposeTrait.MAKES_ONE_HOT, r"one_hot$"),
            (PurposeTrait.LOOKS_UP, r"(?:embedding|_?embedding_bag)$"),
            (PurposeTrait.ZEROES_GRADIENTS, r"Optimizer\.zero_grad#"),
            (PurposeTrait.SPREADS_ROWS, r"_?embedding\w*_dense_backward$"),
            (LayerTrait.NORMALIZES_BATCH, r"(?:cudnn|miopen|native)_batch_norm(?:$|:)"),
        ),
    ),
    NameTable(rules=((OpTrait.OF_DEVICE_LIBRARY, r"(?:torch_)?(?:npu|ipex|xpu|hpu)::"),)),
    NameTable(rules=((RangeTrait.UPDATES_MODEL, _UPDATE), (RangeTrait.OF_FRAMEWORK, _FRAMES))),
    NameTable(
        exact={"detach_": OpTrait.MAKES_TENSOR, "torch::autograd::AccumulateGrad": OpTrait.ADDS_GRADIENT},
    ),
    NameTable(
        exact=dict.fromkeys(("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero"), CallTrait.READS_VALUE)
        | {"entire_frame_compile": CallTrait.COMPILES_FRAME}
    ),
    NameTable(
        rules=(
            (InputTrait.SINGLE_PROCESS, r".*SingleProcess"),
            (InputTrait.MULTI_PROCESS, r".*MultiProcess"),
            (InputTrait.READS_FILE, lambda name: _DATAPIPE_READS.search(name)),
            (InputTrait.DECODES, r"image::decode_"),
        )
    ),
    NameTable(
        applies=lambda name: name.endswith(("pin_memory", "__init__", "_shutdown_workers")),
        rules=(
            (
                InputTrait.PINS_MEMORY,
                r"aten::_?pin_memory$|.*torch/utils/data/_utils/pin_memory\.py\(\d+\): pin_memory$",
            ),
            # The constructor of a loader's iterator, if Python calls were recorded.
            (InputTrait.STARTS_LOADER, r".*torch/utils/data/dataloader\.py\(\d+\): __init__$"),
            (InputTrait.ENDS_LOADER, r".*torch/utils/data/dataloader\.py\(\d+\): _shutdown_workers$"),
        ),
    ),
)


def optimizer_of(name: str) -> str:
    """The class of the optimizer whose call a range is; empty for other ranges.

    >>> optimizer_of("Optimizer.step#AdamW.step"), optimizer_of("update")
    ('AdamW', '')
    """
    return name.removeprefix(_UPDATE).partition(".")[0] if name.startswith(_UPDATE) else ""


_FUSED = ("Adam", "AdamW", "SGD", "Adagrad")
_FOREACH = ("Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop")


def fused_form(update: str) -> str:
    """How the optimizer whose call a range is updates all parameters in a few kernels; empty for one of the program's.

    >>> fused_form("Optimizer.step#SGD.step"), fused_form("Optimizer.step#CustomAdam.step")
    ('torch.optim.SGD(params, fused=True)', '')
    """
    name = optimizer_of(update)
    how = "fused" if name in _FUSED else "foreach" if name in _FOREACH else ""
    return how and f"torch.optim.{name}(params, {how}=True)"


_BACKENDS = ("cudnn", "miopen", "mps", "npu", "ipex", "xpu", "hpu")


def backend_of(op: str) -> str:
    """The backend that an op computes on, of one that has the trait OF_DEVICE_LIBRARY.

    >>> backend_of("aten::_mps_convolution"), backend_of("aten::linear_backward"), backend_of("torch_ipex::mm")
    ('mps', 'mps', 'xpu')
    """
    found = next((backend for backend in _BACKENDS if backend in op), "mps")
    return "xpu" if found == "ipex" else found


def annotated_op(collective: str, module: str, region: str, is_backward: bool, is_trained: bool) -> tuple[str, str]:
    """Name and type of the op of replayed work, by the annotations of its node in the graph.

    Args:
        collective: the operation of a collective; as the others, empty if the node has none.
        module: the path of the `nn.Module`.
        region: what the program calls the part that it marked.
        is_backward: autograd recorded the node.
        is_trained: autograd recorded some node of the trace, so that the others are of a forward pass or an update.

    >>> annotated_op("", "layers.0.attention.wq", "", True, True), annotated_op("", "layers.0", "rope", False, False)
    (('layers.0.attention.wq', 'backward'), ('layers.0/rope', 'module'))
    >>> annotated_op("allreduce", "layers.0", "", True, True), annotated_op("", "", "Optimizer.step#Adam", False, True)
    (('allreduce', 'collective'), ('Optimizer.step#Adam', 'update'))
    """
    if collective:
        return collective, "collective"
    name = "/".join(filter(None, (module, region)))
    if is_backward:
        return name, "backward"
    if name.startswith(_UPDATE) or _UPDATES.search(name):
        return name, "update"
    return name, "forward" if is_trained else "module" if module else "annotation"


def computes_jacobian(frame: str) -> bool:
    """True for a function of PyTorch that computes a whole Jacobian, by the name of its frame.

    >>> computes_jacobian("torch/autograd/functional.py(60): jacobian")
    True
    """
    return _JACOBIAN.match(frame) is not None


def wrapper_of(names: Iterable[str]) -> str:
    """How a model is trained in parallel, by the names of what was recorded: "ddp", "fsdp" or ""."""
    return next((kind for name in names for kind, prefix in _WRAPPERS if name.startswith(prefix)), "")


def plain_range(name: str) -> str:
    """The name of a range that PyTorch marks itself, without its internals; any other name as it is.

    >>> plain_range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter"), plain_range("Optimizer.step#SGD.step")
    ('enumerate(DataLoader)', 'SGD.step')
    """
    head, _, method = name.partition("#")
    if head == "enumerate(DataLoader)":
        return head
    return method if method and head.startswith("Optimizer.") else name
