"""Input pipelines of tf.data.  An iterator's long name lists the stages above it: `Iterator::Root::Batch::Map`."""

from __future__ import annotations

from stepscope.model import EventKind, Trait
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.tables import KindRule, NameTable
from stepscope.vocabulary.traits import InputTrait

K = EventKind

KINDS: tuple[KindRule, ...] = (
    (r"(?i:IteratorGetNext)|MultiDeviceIteratorGetNext", K.INPUT_WAIT, Trait.NONE),
    (r"Iterator::.*::(?:TFRecord|TextLine|FixedLengthRecord|SSTable|RecordIO|ArrayRecord)(?:V\d+)?(?:\[\d+\])?$",
     K.ITERATOR, Trait.FILE_READ),
    (r"Iterator::|Iterator$", K.ITERATOR, Trait.NONE),
    (r"(?:Prefetch|ParallelInterleave|ParallelMap|ParallelFilter|MapAndBatch|ParseExample|ParallelBatch)"
     r"(?:Produce|Consume|InitializeInput)$", K.INPUT_HANDOVER, Trait.NONE),
    (r"InstantiatedCapturedFunction::Run", K.INPUT_CALLBACK, Trait.NONE),
)  # fmt: skip

# Ops in which a session of TensorFlow 1 waits for its input.
SESSION_KINDS: tuple[KindRule, ...] = (
    (r"(?:Multi|OneShot)?IteratorGetNext|MultiDeviceIteratorGetNext\w*", K.INPUT_WAIT, Trait.NONE),
    (r"Queue(?:Dequeue|DequeueMany|DequeueUpTo)(?:V2)?$|ReaderRead(?:UpTo)?(?:V2)?$", K.INPUT_WAIT, Trait.NONE),
)

_THREAD = "tf_data"
# `Interleave[524]` is the 524th dataset that an interleave opened: a new iterator of the same stage.  Datasets with a
# fixed number of inputs number those inputs instead.
_OPENED = Pattern(r"(?<!:Zip)(?<!:Concatenate)(?<!:DirectedInterleave)\[\d+\]")
# Iterators whose few threads serve all of their inputs: while an input waits for its element, the threads may be busy
# with other inputs, and that work is what it waits for.
_SHARES_WORKERS = Pattern(r"(?:Legacy)?ParallelInterleave")
# Stages that read ahead, anywhere between the file and the step.
_AHEAD = Pattern(r"::(?:\w*MemoryReader|\w*MemoryWriter|\w*Interleave|Prefetch|ParallelMap)")
_PASSES_OVER = Pattern(r"(?:Finite|Forever)?Skip")
_HANDS_ON = Pattern(r"Prefetch|Options|FiniteTake|MaxIntraOpParallelism|PrivateThreadPool")
_MAKES = Pattern(r"(?:Parallel)?(?:Map\w*|Filter|(?:Padded)?Batch|Interleave|FlatMap)(?:V\d)?")

NAMES: tuple[NameTable, ...] = (
    NameTable(
        rules=(
            (InputTrait.FROM_PYTHON, r"Iterator::.*Generator"),
            (InputTrait.PARALLEL, r"Iterator::.*(?:Parallel\w+|MapAndBatch)"),
            (InputTrait.FOR_DEVICE, r"Iterator::(?:(?:Root|Model)::)?Prefetch::Generator$"),
            (InputTrait.READS_AHEAD, lambda name: _AHEAD.search(name)),
        )
    ),
)


def is_thread(name: str) -> bool:
    """True for a thread that serves tf.data, by the name of its line."""
    return _THREAD in name


def plain_name(name: str) -> str:
    """A long name without the numbers of opened datasets.

    >>> plain_name("Iterator::Root::ParallelInterleaveV4[524]::Map")
    'Iterator::Root::ParallelInterleaveV4::Map'
    >>> plain_name("Iterator::Root::Zip[1]::Map")
    'Iterator::Root::Zip[1]::Map'
    """
    return _OPENED.sub("", name)


def parts(long_name: str) -> list[str]:
    """The parts of a long name, outermost first."""
    return long_name.split("::")


def last_part(long_name: str) -> str:
    """The iterator's own type, without the number of an input: the last part of its long name."""
    return long_name.rpartition("::")[2].partition("[")[0]


def parent_name(long_name: str) -> str:
    """The long name of the iterator that calls this one; empty for a root.

    >>> parent_name("Iterator::Root::Zip[1]::Map")
    'Iterator::Root::Zip'
    """
    above = long_name.rpartition("::")[0]
    if "::" not in above:
        return ""
    head, _, last = above.rpartition("::")
    return f"{head}::{last.partition('[')[0]}"


def shares_workers(long_name: str) -> bool:
    """True for an iterator whose threads serve all of its inputs."""
    return _SHARES_WORKERS.match(last_part(long_name)) is not None


def passes_over(long_name: str) -> str:
    """The stage that may pass over what an iterator makes by a function, with only buffers between them: its long name;
    empty for any other iterator.

    >>> passes_over("Iterator::Root::FiniteSkip::Prefetch::MapAndBatch")
    'Iterator::Root::FiniteSkip'
    >>> passes_over("Iterator::Root::FiniteSkip::TensorSlice")
    ''
    """
    above = parent_name(long_name) if _MAKES.fullmatch(last_part(long_name)) else ""
    while _HANDS_ON.fullmatch(last_part(above)):
        above = parent_name(above)
    return above if _PASSES_OVER.fullmatch(last_part(above)) else ""
