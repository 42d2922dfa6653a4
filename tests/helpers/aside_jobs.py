"""Work for processes of `stepscope.capture.aside`: `main([RESULT, WHAT])`."""

import json
import os
import sys
import time
from pathlib import Path


def main(words):
    result, what = Path(words[0]), words[1]
    if what == "tell":
        loaded = sorted({"site", "sitecustomize", "stepscope.capture.auto.autostart"} & set(sys.modules))
        known = sorted(name for name in os.environ if name.startswith(("STEPSCOPE", "PYTHON")))
        said = {"modules": loaded, "environment": known, "nice": os.nice(0), "leader": os.getsid(0) == os.getpid()}
        unfinished = result.with_name("unfinished")
        unfinished.write_text(json.dumps(said))
        unfinished.replace(result)
    elif what == "fall":
        raise ValueError("the third event is no event")
    elif what == "lack":
        import stepscope_has_no_such_module  # noqa: F401
    elif what == "sleep":
        time.sleep(600)
