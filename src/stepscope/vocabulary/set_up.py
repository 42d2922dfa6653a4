"""What makes something that a run needs once: ops that begin an epoch or build a pipeline, and constructors of
libraries."""

from __future__ import annotations

from stepscope.vocabulary.tables import NameTable
from stepscope.vocabulary.tensorflow import eager_op
from stepscope.vocabulary.traits import SetUpTrait

_FRAME_OF = r"(?:.*[/\\$])?{}\.py(?:\(\d+\):|:\d+) {}$"  # a Python call of a file's function

_CONSTRUCTORS = {
    SetUpTrait.RUNS_LOOP: (r"keras/src/(?:backend/\w+/trainer|trainers/trainer)", "(?:fit|predict|evaluate)"),
    SetUpTrait.MAKES_LOADER: (r"torch/utils/data/dataloader", "(?:__init__|__iter__|_get_iterator)"),
    SetUpTrait.MAKES_PIPELINE: (
        r"(?:tensorflow/python/data/ops/\w+|keras/src/trainers/(?:data_adapters/\w+|epoch_iterator))",
        "(?:__init__|__iter__|_create_iterator)",
    ),
    SetUpTrait.MAKES_OPTIMIZER: (r"(?:torch/optim|keras/src/optimizers)/\w+", "(?:__init__|build)"),
    SetUpTrait.MAKES_MODULE: (r"(?:torch/nn/modules/\w+|keras/src/layers/[\w/]+)", "(?:__init__|build)"),
    SetUpTrait.WALKS_MODULE: (
        r"(?:flax/nnx/(?:extract|graph|graphlib)|equinox/(?:_filters|_jit))",
        "(?:to_tree|from_tree|flatten|unflatten|split|merge|update|partition|combine)",
    ),
    SetUpTrait.MAKES_THREADS: (
        r"(?:threading|concurrent/futures/(?:thread|process)|multiprocessing/(?:pool|context|process|popen_\w+))",
        "(?:__init__|start|_launch|_adjust_thread_count|_repopulate_pool\\w*)",
    ),
}

NAMES: tuple[NameTable, ...] = (
    NameTable(
        exact={"aten::randperm": SetUpTrait.DRAWS_ORDER}
        | dict.fromkeys(
            (
                "aten::empty",
                "aten::random_",
                "aten::item",
                "aten::_local_scalar_dense",
                "aten::resolve_conj",
                "aten::resolve_neg",  # as the order becomes a list
            ),
            SetUpTrait.PART_OF_DRAWING,
        ),
    ),
    NameTable(
        applies=lambda name: bool(eager_op(name)),
        key=eager_op,
        rules=(
            (SetUpTrait.MAKES_PIPELINE, r"(?:\w*Dataset(?:V\d)?|MakeIterator|AnonymousIterator\w*)$"),
            (SetUpTrait.BEGINS_PIPELINE, r"MakeIterator$"),
        ),
    ),
    NameTable(exact={"TFE_DeleteTensorHandle": SetUpTrait.RELEASES_TENSOR}),
    *(NameTable(rules=((trait, _FRAME_OF.format(*place)),)) for trait, place in _CONSTRUCTORS.items()),
)
