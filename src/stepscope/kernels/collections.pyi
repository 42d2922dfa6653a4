from typing import Any

class TimedCollections:
    total_ns: int
    count: int
    def __call__(self, phase: str, info: dict[str, Any]) -> None: ...
