"""Ranges of NVTX, by which frameworks and programs name what their threads do: in files of Nsight Systems.

aten::linear, seq = 3, op_id = 12          an op of PyTorch under emit_nvtx, with the sizes of its inputs if asked for
step 12, iteration_3, train step: 7        a step that the program counts
"""

from __future__ import annotations

from stepscope.model import EventKind, Trait
from stepscope.vocabulary import torch
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.tables import KindRule

_DETAILS = Pattern(r", (?:seq|op_id|sizes|input_op_ids|trace_id) = .*")
_COUNTED = Pattern(r"(?i)(?P<name>(?:train(?:ing)?[ _:.-]?)?(?:step|iter(?:ation)?)s?)[ _:#=.-]*(?P<number>\d{1,18})")
_OF_OPS = (r"(?:aten|c10d|prims|torch|vision|xformers|flash_attn)\w*::", EventKind.OP, Trait.NONE)

_OF_NCCL = (r"nccl(?:Comm(?:Init|Destroy|Finalize|Abort)|GetUniqueId)", EventKind.RUNTIME_CALL, Trait.NONE)

KINDS: tuple[KindRule, ...] = (_OF_OPS, _OF_NCCL, *torch.ANNOTATION_KINDS)


def split_range(text: str) -> tuple[str, int | None]:
    """The name of a range without what differs from call to call, and its number if it is a counted step.

    >>> split_range("aten::linear, seq = 3, op_id = 12"), split_range("nccl:all_reduce, op_id = 7")
    (('aten::linear', None), ('nccl:all_reduce', None))
    >>> split_range("train_step 12"), split_range("layer 3")
    (('train_step', 12), ('layer 3', None))
    """
    counted = _COUNTED.fullmatch(text)
    if counted:
        return counted["name"], int(counted["number"])
    return _DETAILS.sub("", text) if ", " in text else text, None
