"""Runs one XProf tool in a process of its own, so that its protobuf and native state never meets the tests'.

    python oracle_worker.py TOOL OUTPUT OPTIONS XPLANE...

writes the tool's answer, with options as JSON, to OUTPUT and exits with 3 if there is none.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(tool: str, output: str, options: str, paths: list[str]) -> int:
    from xprof.convert import raw_to_tool_data

    if tool == "memory_viewer":  # it reads programs that listing the tools takes out of the profile
        raw_to_tool_data.xspace_to_tool_names(paths)
    data, _ = raw_to_tool_data.xspace_to_tool_data(paths, tool, json.loads(options))
    if not data:
        return 3
    Path(output).write_bytes(data if isinstance(data, bytes) else data.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
