"""The rules of this package: see `stepscope.analysis.advice.rule`, which lists their files."""
