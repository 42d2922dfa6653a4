"""Advice: what to change first, with its evidence and the step time to expect.

A rule looks at what the tools found and answers with one piece of advice or none; see `stepscope.analysis.advice.rule`.
Rules of other packages are registered with `register`, or by an entry point of the group `stepscope.rules`.
"""

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import CLASSES, Advice, Interval, Row
from stepscope.analysis.advice.ranking import Advised, advise
from stepscope.analysis.advice.registry import register, rules
from stepscope.analysis.advice.rule import Rule

__all__ = ["CLASSES", "Advice", "Advised", "Context", "Interval", "Row", "Rule", "advise", "register", "rules"]
