"""The rules of this package: see `stepscope.analysis.advice.registry`, which lists their files."""
