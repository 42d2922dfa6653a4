"""Device memory profiles: their names, and how they start."""

from __future__ import annotations

from stepscope.formats.form import Format

# The types of the values of a sample: two messages, each with the numbers of two texts.
_TYPES = b"\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x04"


class JaxMemoryFormat(Format):
    """Profiles of pprof with allocations and their bytes."""

    def looks_like(self, content: bytes) -> bool:
        """True for a profile of two values, which counts and bytes are; the reader looks at their names."""
        return content.startswith(_TYPES)


FORMAT = JaxMemoryFormat(
    name="jax-memory",
    noun="a device memory profile",
    summary="device memory profile (*.prof), written by jax.profiler.save_device_memory_profile; give the file itself",
    pattern=r"(?P<host>.+?)(?:\.memory)?\.(?:prof|pprof)",
    reader="stepscope.formats.jax_memory.reader:read",
    in_folders=False,
    holds_memory_only=True,
)
