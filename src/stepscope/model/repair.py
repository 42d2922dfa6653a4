"""What was changed in a recording because it could not be so, as a value."""

from __future__ import annotations

from stepscope.records import dataclass


@dataclass(frozen=True, slots=True)
class Repair:
    """Events of one kind of fault, and what was made of them when the recording was read.

    Attributes:
        code: stable identifier of the fault, such as `ends-after-next`.
        count: how many events; of: among how many of their kind.
        ps: how much time was taken away.
        found: what was found, as a sentence without its end.
        done: what was made of it, in a few words.
        effect: which figures would be wrong without it.
        is_small: it moves too little to be worth a warning.
    """

    code: str
    count: int
    of: int
    ps: int
    found: str
    done: str
    effect: str
    is_small: bool = False

    def __str__(self) -> str:
        return f"{self.found}: {self.done}"
