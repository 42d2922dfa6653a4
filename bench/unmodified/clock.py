"""The clock of a script: the time of each step as the script itself measures it, in a file when the script ends."""

import atexit
import json
import os
import time


class Clock:
    """Notes the end of each step; writes the moments in ns to `clock-RANK.json` of the folder in CLOCK_FOLDER."""

    def __init__(self) -> None:
        self.moments = [time.perf_counter_ns()]
        atexit.register(self.write)

    def tick(self) -> None:
        """A step has ended."""
        self.moments.append(time.perf_counter_ns())

    def write(self) -> None:
        """Writes the moments, if there was any step."""
        folder, rank = os.environ.get("CLOCK_FOLDER"), os.environ.get("RANK", "0")
        if folder and len(self.moments) > 1:
            with open(os.path.join(folder, f"clock-{rank}.json"), "w", encoding="utf-8") as file:  # noqa: PTH118, PTH123
                json.dump(self.moments, file)


CLOCK = Clock()
