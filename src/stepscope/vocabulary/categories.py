"""The step category by which the page colours an op, a kernel, an input stage or a thread, from its name.

A copy has one colour whichever way it goes, as in the account of a step.  The server sends these rules to the page,
which holds no names itself.  They only affect colours: the breakdown of steps uses the kinds of events.
"""

from __future__ import annotations

from typing import NamedTuple


class CategoryRule(NamedTuple):
    """The names of a category.

    Attributes:
        category: a category of the step breakdown.
        pattern: a regular expression to find in the name in lower case, valid in both Python and JavaScript.
        where: "host" or "device" if the rule applies only there, otherwise empty.
    """

    category: str
    pattern: str
    where: str = ""


CATEGORY_RULES: tuple[CategoryRule, ...] = (
    CategoryRule("other", r"^(idle|others?|unknown)$"),
    CategoryRule(
        "device_collectives",
        r"nccl|rccl|all[-_ ]?reduce|all[-_ ]?gather|all[-_ ]?to[-_ ]?all|reduce[-_ ]?scatter|param_comms"
        r"|collective(?!::|mainloop|mma|epilogue|builder)"  # these are parts of products in CUTLASS
        r"|broadcast_coalesced",
    ),
    CategoryRule(
        "device_to_device",
        r"(host|device) to (host|device)|[dh]2[dh]|[dh]to[dh]|p2p|\bsend\b|\brecv\b|memcpy|^(aten::)?copy|copy_?$",
    ),
    CategoryRule("input", r"^dataset$|infeed|dataloader|^input( wait)?$|iterator::|tf\.data|enqueue|^read_|preprocess"),
    CategoryRule("output", r"outfeed"),
    CategoryRule("compilation", r"compil"),
    CategoryRule("kernel_launch", r"launch", "host"),
)
"""The first rule that matches wins.  If none does, it is computation, on the host or on the device."""
