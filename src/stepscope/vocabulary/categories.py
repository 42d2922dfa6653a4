"""Which of the step's categories an op, a kernel, an input stage or a thread is drawn as, by what it is called.

The server hands these rules to the page, which has no names of its own.  They are for the eye alone: the breakdown of
steps goes by the kinds of events.
"""

from __future__ import annotations

from typing import NamedTuple


class CategoryRule(NamedTuple):
    """Names of a category.

    Attributes:
        category: a category of the step breakdown.
        pattern: a regular expression that is found in the name in lower case; both Python and JavaScript read it.
        where: "host" or "device" if it holds there alone, else empty.
    """

    category: str
    pattern: str
    where: str = ""


CATEGORY_RULES: tuple[CategoryRule, ...] = (
    CategoryRule("other", r"^(idle|others?|unknown)$"),
    CategoryRule(
        "device_collectives",
        r"nccl|rccl|all[-_ ]?reduce|all[-_ ]?gather|all[-_ ]?to[-_ ]?all|reduce[-_ ]?scatter|collective|param_comms"
        r"|broadcast_coalesced",
    ),
    CategoryRule(
        "input",
        r"^dataset$|host to device|h2d|htod|infeed|dataloader|^input( wait)?$|iterator::|tf\.data|enqueue|^read_"
        r"|preprocess",
    ),
    CategoryRule("output", r"device to host|d2h|dtoh|outfeed"),
    CategoryRule("device_to_device", r"device to device|d2d|dtod|p2p|\bsend\b|\brecv\b|memcpy|^(aten::)?copy|copy_?$"),
    CategoryRule("compilation", r"compil"),
    CategoryRule("kernel_launch", r"launch", "host"),
)
"""The first that matches wins; what none matches is computation, on the host or on the device."""
