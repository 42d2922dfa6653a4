from types import CodeType, FrameType

def current_frames() -> dict[int, FrameType]: ...
def read_stacks(
    most: int,
    skipped: str,
    kept: str = ...,
    last: str = ...,
    places: dict[int, tuple[CodeType, int]] | None = ...,
    own: dict[int, list[tuple[CodeType, int]]] | None = ...,
    libraries: tuple[str, ...] = ...,
) -> dict[int, list[tuple[CodeType, int]]]: ...
def read_stack(thread: int | None, most: int = ...) -> list[tuple[CodeType, int]]: ...
def file_of(code: CodeType) -> str: ...
