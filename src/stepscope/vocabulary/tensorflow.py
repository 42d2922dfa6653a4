"""TensorFlow: ops named `path/name:Type`, eager dispatch, functions, executors.  Its input pipelines: `tf_data`."""

from __future__ import annotations

from stepscope.model import EventKind, Trait
from stepscope.vocabulary.computing_ops import POINTWISE
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.tables import KindRule, NameTable
from stepscope.vocabulary.traits import CallTrait, InputTrait, LayerTrait, OpTrait, PurposeTrait

K = EventKind

KERAS_STEPS: tuple[KindRule, ...] = (
    (r"TraceContext$", K.STEP_MARK, Trait.NONE),
    (r"(?:train|test)[^/]*$", K.OTHER, Trait.MARKS_IF_ROOT),
)
RUNTIME: tuple[KindRule, ...] = (
    (r"(?:FunctionRun|SessionRun|RunGraph)$", K.FUNCTION_RUN, Trait.NONE),
    (r"ExecutorState::Process|ExecutorDoneCallback", K.EXECUTOR, Trait.NONE),
    (r"Eager(?:Kernel|Local)?Execute", K.EAGER_EXECUTE, Trait.NONE),
    (r"MemoryAllocation$", K.ALLOCATION, Trait.NONE),
    (r"MemoryDeallocation$", K.DEALLOCATION, Trait.NONE),
    (r"ThreadpoolListener::StartRegion$", K.REGION_BEGIN, Trait.NONE),
    (r"ThreadpoolListener::StopRegion$", K.REGION_END, Trait.NONE),
    (r"ThreadpoolListener::", K.THREADPOOL, Trait.NONE),
    (r"InfeedEnqueue", K.COPY_HOST_TO_DEVICE_CALL, Trait.ENQUEUE),
    (r"tf\.function-graph_building", K.COMPILE, Trait.COMPILES),
    (r"(?:SaveV2|MergeV2Checkpoints|RestoreV2|ShardedFilename)(?::|$)|.*:(?:SaveV2|MergeV2Checkpoints|RestoreV2)$",
     K.CHECKPOINT, Trait.NONE),
    # Ops and those who run them: core/common_runtime/base_collective_executor.cc.  Other ops set up groups.
    (r"(?:Base)?CollectiveExecutor::|CollectiveOp(?:V2)?Kernel::|[^:]+:Collective(?:Reduce|Gather|Bcast|AllToAll)\w*$",
     K.COLLECTIVE_CALL, Trait.NONE),
)  # fmt: skip
OPS: tuple[KindRule, ...] = ((r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*:[A-Z_]\w*$", K.OP, Trait.NONE),)
UNTYPED_OPS: tuple[KindRule, ...] = ((r"[^:]+:$", K.OP, Trait.NONE),)

KERAS_BATCH = "Profiled batch"
"""The mark of Keras' TensorBoard callback.  It numbers batches from 0; `profile_batch`, which chooses them, from 1."""
READS_VARIABLE = "ReadVariableOp"
"""The op of a variable inside the one that takes it."""

ONLY_HERE = ("FunctionRun", "EagerExecute", "ExecutorState::Process")
"""Names that no other framework writes."""

OF_ANY_OP = ("EagerExecute",)
"""Events around an op that do not name it."""

_EAGER = "EagerLocalExecute: "
_SAVING = ("SaveV2", "MergeV2Checkpoints", "RestoreV2", "ShardedFilename", "WriteFile")
# The dispatch of a single op.  Names of functions start with two underscores.
_EAGER_OP = Pattern(rf"{_EAGER}(?!__)(?P<op>\w+)$")
_FUNCTION = Pattern(r"a?_+inference_(.+?)_+\d+(?:__XlaMustCompile.*)?$")
_MOVES = Pattern(
    r"_?(?:Mkl)?(?:Concat(?:V2)?|Slice|StridedSlice|Tile|Pad(?:V2)?|MirrorPad|Pack|Roll|Copy|Snapshot|Fill|ZerosLike"
    r"|AssignVariableOp|ReadVariableOp|ResourceStridedSliceAssign|StridedSliceAssign|TensorScatterUpdate|BroadcastTo"
    r"|DeepCopy|Reverse)$"
)


THREAD_MODE = "TF_GPU_THREAD_MODE"


def launches_apart(line: str) -> bool:
    """True for a thread that TensorFlow keeps for launching on devices, by the name of its line.

    >>> [launches_apart(line) for line in ("tf_gpu_private_6/-1204", "tf_gpu_shared/7", "tf_Compute/12")]
    [True, True, False]
    """
    return line.startswith(("tf_gpu_private", "tf_gpu_shared"))


def eager_op(name: str) -> str:
    """The op that an eager dispatch starts; empty if it starts a function, or is not an eager dispatch.

    >>> eager_op("EagerLocalExecute: ConcatV2"), eager_op("EagerLocalExecute: __inference_step_12")
    ('ConcatV2', '')
    """
    found = _EAGER_OP.match(name) if name.startswith(_EAGER) else None  # most names are of ops in graphs
    return found["op"] if found else ""


def function_of_program(program: str) -> str:
    """The user's name of the function that a program was compiled from.

    >>> [function_of_program(name) for name in ("jit_move", "a_inference_step_963__XlaMustCompile_true_config_1_.2")]
    ['jit_move', 'step']
    """
    found = _FUNCTION.match(program)
    return found[1] if found else program


def is_retraced(function_call: bytes) -> bool:
    """True if the stat of a function call says that the call caused a new trace."""
    return function_call.startswith(b"traced")


def _is_typed(name: str) -> bool:
    return ":" in name and "::" not in name


def _type_of(name: str) -> str:
    return name[name.rfind(":") + 1 :]


def _may_be_gradient(name: str) -> bool:
    """True for a name with a word that the rule for gradients needs: few have one, and looking for it is fast."""
    return "gradient" in name or "Grad" in name or "Backprop" in name or "_backward" in name


def _may_be_random(name: str) -> bool:
    """The same for the rule for random numbers."""
    name = name.lower()
    return "random" in name or "shuffle" in name or "dropout" in name


def _moves_eagerly(name: str) -> bool:
    """True for the eager dispatch of an op that moves data.  Reads and writes of variables do not count."""
    op = eager_op(name)
    return bool(op) and not op.endswith("VariableOp") and _MOVES.match(op) is not None


# As an allocation's `data_type` numbers them; 14 is bfloat16.
SINGLE_TYPE, DOUBLE_TYPE, HALF_TYPE = 1, 2, 19
WIDE_TYPES = (
    SINGLE_TYPE,
    DOUBLE_TYPE,
    14,
    HALF_TYPE,
)  # float, double, bfloat16 and half, as an allocation's `data_type` numbers them

NAMES: tuple[NameTable, ...] = (
    NameTable(
        applies=_is_typed,
        key=_type_of,
        rules=(
            (OpTrait.MOVES_DATA, lambda kind: _MOVES.match(kind)),
            (OpTrait.CONVERTS, r"Cast$"),
            (
                OpTrait.MULTIPLIES,
                r"_?(?:Mkl|MklNative)*(?:Fused)*(?:Batch)?(?:MatMul(?:V\d)?|Conv\dD\w*|DepthwiseConv\w*|Einsum|XlaDot\w*"
                r"|Matrix(?!Diag|Band|Set)\w+|Cholesky\w*|SelfAdjointEig\w*|Svd|Qr|Lu)",
            ),
            (OpTrait.CALLS_PYTHON, r"(?:Eager)?PyFunc\w*$|NumpyFunction$"),
            (OpTrait.READS_FILE, r"(?:ReadFile|WholeFileReader\w*|ReaderRead\w*|MatchingFiles)$"),
            (OpTrait.WRITES_VARIABLE, r"(?:Assign\w*VariableOp|ResourceApply\w+)$"),
            (LayerTrait.ADDS_BIAS, r"BiasAdd(?:V\d)?$"),
            (LayerTrait.NORMALIZES_BATCH, r"_?(?:Mkl)?FusedBatchNorm(?:V\d|Ex)?$"),
            (
                InputTrait.MOVES_PIXELS,
                r"(?:_?(?:Mkl)?Transpose|ReverseV2|Slice|StridedSlice|Pad(?:V2)?|MirrorPad|Roll|ExtractGlimpse\w*"
                r"|CropAndResize|ImageProjectiveTransformV\d)$",
            ),
            (InputTrait.DECODES, r"Decode(?:Jpeg|Image|Png|Gif|Bmp|AndCropJpeg|WebP)$"),
            (PurposeTrait.CHECKS_NUMBERS, r"(?:CheckNumerics|DebugNumericSummary)(?:V\d)?$"),
            (PurposeTrait.MAKES_ONE_HOT, r"OneHot$"),
            (PurposeTrait.LOOKS_UP, r"(?:Resource)?Gather(?:V\d)?$"),
            (PurposeTrait.SPREADS_ROWS, r"UnsortedSegmentSum$"),
            (PurposeTrait.POINTWISE, lambda kind: POINTWISE.fullmatch(kind)),
        ),
    ),
    NameTable(applies=lambda name: name.startswith(_EAGER), rules=((OpTrait.MOVES_DATA, _moves_eagerly),)),
    NameTable(
        applies=_may_be_gradient,
        rules=((OpTrait.OF_GRADIENT, r"(?:.*/)?gradient|.*(?:Backprop|_backward|Grad)\b"),),
    ),
    NameTable(applies=_may_be_random, rules=((OpTrait.IS_RANDOM, r"(?i).*(?:random|shuffle|dropout)"),)),
    NameTable(
        applies=lambda name: name.startswith(_EAGER),
        rules=((CallTrait.DISPATCHES, _EAGER), (CallTrait.DISPATCHES_OP, eager_op)),
    ),
    NameTable(
        exact={
            **dict.fromkeys(("tf.constant", "convert_to_tensor"), CallTrait.COPIES_IN),
            **dict.fromkeys((f"{_EAGER}{op}" for op in _SAVING), CallTrait.SAVES_STATE),
            f"{_EAGER}AssignVariableOp": CallTrait.ASSIGNS_VARIABLE,
            **dict.fromkeys(
                ("TFE_Py_ExecuteCancelable", "TFE_Py_FastPathExecute_C", "TFE_Py_Execute"), CallTrait.LEAVES_PYTHON
            ),
            "KernelAndDeviceFunc::Run": CallTrait.RUNS_KERNEL,
        }
    ),
)
