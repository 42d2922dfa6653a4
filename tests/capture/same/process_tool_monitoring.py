import sys

if hasattr(sys, "monitoring"):
    m = sys.monitoring
    print([m.get_tool(i) for i in range(6)])
    for i in range(6):
        m.use_tool_id(i, str(i))
    n = []
    m.register_callback(2, m.events.PY_START, lambda c, o: n.append(c.co_name))
    m.set_events(2, m.events.PY_START)

    def f():
        pass

    f()
    m.set_events(2, 0)
    print(n)
    for i in range(6):
        m.free_tool_id(i)
print("ok")
