"""The stats that analyses ask for, by meaning.  Writers spell some of them differently; the first spelling that a
trace holds wins, event by event."""

from __future__ import annotations

GROUP_ID = ("group_id",)
STEP_NUM = ("step_num",)
STEP_NAME = ("step_name",)
ITER_NUM = ("iter_num",)
ROOT_LEVEL = ("_r",)
PRODUCER_TYPE = ("_pt",)
PRODUCER_ID = ("_p",)
CONSUMER_TYPE = ("_ct",)
CONSUMER_ID = ("_c",)
IS_FUNCTION = ("is_func",)
RUN_ID = ("id",)
ITERATOR_ID = ("id",)
PARENT_ITERATOR_ID = ("parent_id",)
CORRELATION_ID = ("correlation_id",)
FRAMEWORK_OP = ("tf_op", "level 0", "annotation")
HLO_OP = ("hlo_op",)
HLO_MODULE = ("hlo_module",)
HLO_CATEGORY = ("hlo_category",)
PROGRAM_ID = ("program_id",)
XLA_RUN_ID = ("run_id",)
SHAPE = ("shape",)
OCCURRENCES = ("num_occurrences",)
DEVICE_OFFSET_PS = ("device_offset_ps",)
DEVICE_DURATION_PS = ("device_duration_ps",)
