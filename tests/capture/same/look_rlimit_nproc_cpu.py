"""Limits that a program sets and reads."""

import resource

resource.setrlimit(resource.RLIMIT_CPU, (100, 200))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
for name in ("CPU", "CORE", "FSIZE", "STACK", "DATA", "MEMLOCK"):
    print(name, resource.getrlimit(getattr(resource, f"RLIMIT_{name}")))
