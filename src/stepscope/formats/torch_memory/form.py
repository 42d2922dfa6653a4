"""Memory snapshots: their names, and how they start."""

from __future__ import annotations

from stepscope.formats.form import Format

_HEAD = 256  # bytes; these hold the first key


class TorchMemoryFormat(Format):
    """Pickles of a dictionary with segments and traces."""

    def looks_like(self, content: bytes) -> bool:
        """True for a pickle with one of a snapshot's keys."""
        return content.startswith(b"\x80") and (b"device_traces" in content or b"segments" in content[:_HEAD])


FORMAT = TorchMemoryFormat(
    name="torch-memory",
    noun="a memory snapshot",
    summary="memory snapshot (*.pickle), written by torch.cuda.memory._dump_snapshot; give the file itself",
    pattern=r"(?P<host>.+)\.(?:pickle|pkl)",
    reader="stepscope.formats.torch_memory.reader:read",
    in_folders=False,
    holds_memory_only=True,
)
