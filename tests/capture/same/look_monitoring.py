"""sys.monitoring: all tools are free, and events are the program's."""

import sys

if hasattr(sys, "monitoring"):
    print([sys.monitoring.get_tool(n) for n in range(6)])
    sys.monitoring.use_tool_id(0, "mine")
    seen = []
    sys.monitoring.register_callback(0, sys.monitoring.events.PY_START, lambda code, at: seen.append(code.co_name))
    sys.monitoring.set_events(0, sys.monitoring.events.PY_START)

    def f():
        return 1

    f()
    f()
    sys.monitoring.set_events(0, 0)
    print(seen)
print("end")
