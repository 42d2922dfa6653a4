"""What is to be proved, as text for the environment of the processes that a program starts."""

from __future__ import annotations

import json
from dataclasses import asdict, fields

from stepscope.errors import UsageError
from stepscope.records import dataclass


@dataclass(frozen=True)
class ProveOptions:
    """What is to be proved.

    Attributes:
        program: its name, by which proofs are found again.
        at: places to delay; with none here and in `ablate`, the first ones of the account are taken.
        ablate: parts or functions to leave out.
        budget_s: how long to measure at most.
        stop_after: end the program with the answer; after an ablation it ends anyway.
        output: a file that gets the proofs as well; empty for none.
        timed: steps are only timed, in this process as it is or with a setting; the answer goes to `output` alone.
        setting: the name of that one, see `stepscope.proof.knobs`.
    """

    program: str = "python"
    at: tuple[str, ...] = ()
    ablate: tuple[str, ...] = ()
    budget_s: float = 60.0
    stop_after: bool = False
    output: str = ""
    timed: bool = False
    setting: str = ""

    def to_text(self) -> str:
        """The options for the environment."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> ProveOptions:
        """The options that `to_text` wrote.

        Raises:
            UsageError: the text is something else.
        """
        try:
            given = json.loads(text)
            known = {field.name: given[field.name] for field in fields(cls) if field.name in given}
            return cls(**known | {name: tuple(known.get(name, ())) for name in ("at", "ablate")})
        except (ValueError, TypeError) as error:
            raise UsageError(f"STEPSCOPE_PROVE is not a set of options of stepscope prove: {error}") from error
