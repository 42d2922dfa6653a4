"""Work for processes of `stepscope.capture.other_process`: `main([RESULT, WHAT])`."""

import json
import os
import sys
import time
from pathlib import Path


def main(words):
    result, what = Path(words[0]), words[1]
    if what == "tell":
        loaded = sorted({"site", "sitecustomize", "stepscope.capture.auto.autostart"} & set(sys.modules))
        said = {"modules": loaded, "nice": os.nice(0), "leader": os.getsid(0) == os.getpid()}
        result.write_text(json.dumps(said))
    elif what == "fall":
        raise ValueError("the third event is no event")
    elif what == "lack":
        import stepscope_has_no_such_module  # noqa: F401
    elif what == "sleep":
        time.sleep(600)
