"""The step category by which the page colours an op, a kernel, an input stage or a thread, from its name.

The server sends these rules to the page, which holds no names itself.  They only affect colours: the breakdown of steps
uses the kinds of events.
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
"""The first rule that matches wins.  If none does, it is computation, on the host or on the device."""
