from collections.abc import Callable
from typing import Any

def untraced(call: Callable[..., Any], *args: Any) -> Any: ...
