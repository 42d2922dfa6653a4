"""Advice: what to change first, with its evidence and the predicted step time.

A rule reads what the tools found and returns one piece of advice or none; see `stepscope.analysis.advice.rule`.
Other packages add rules with `register`, or with an entry point in the group `stepscope.rules`.
"""

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import CLASSES, Advice, Interval, Row
from stepscope.analysis.advice.ranking import Advised, advise
from stepscope.analysis.advice.rule import Rule, register, rules

__all__ = ["CLASSES", "Advice", "Advised", "Context", "Interval", "Row", "Rule", "advise", "register", "rules"]
