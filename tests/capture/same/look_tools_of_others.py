# arguments: torch_profiler jax_profiler tf_profiler cprofile_thread trace_module monitoring timeit
# timeout: 240
"""Profilers of the program's own beside ours: what they say is what they say alone."""

import sys

way = sys.argv[1]


def step(n):
    return sum(i * n for i in range(2000))


if way == "torch_profiler":
    import torch

    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handled = []
    with torch.profiler.profile(
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda p: handled.append(sorted(e.key for e in p.key_averages() if "ProfilerStep" not in e.key)),
    ) as p:
        for n in range(6):
            optimizer.zero_grad()
            model(torch.ones(1, 4)).sum().backward()
            optimizer.step()
            p.step()
    print(len(handled), [each for each in handled[0] if each.startswith(("aten::addmm", "Optimizer"))])
    with torch.autograd.profiler.profile() as q:
        model(torch.ones(1, 4))
    print([e.name for e in q.function_events][:3])
    with torch.autograd.profiler.record_function("mine"):
        for n in range(4):
            optimizer.step()
elif way == "jax_profiler":
    import glob

    import jax

    f = jax.jit(lambda x: x * 2)
    with jax.profiler.trace("traced"):
        for n in range(5):
            with jax.profiler.StepTraceAnnotation("train", step_num=n):
                f(1.0).block_until_ready()
    print(len(glob.glob("traced/plugins/profile/*/*.xplane.pb")))
    for n in range(6):
        f(float(n))
    try:
        jax.profiler.stop_trace()
    except RuntimeError as error:
        print(error)
    import shutil

    shutil.rmtree("traced")
elif way == "tf_profiler":
    import glob
    import shutil

    import tensorflow as tf

    f = tf.function(lambda x: x * 2)
    tf.profiler.experimental.start("traced")
    for n in range(5):
        with tf.profiler.experimental.Trace("train", step_num=n, _r=1):
            f(tf.constant(1.0))
    tf.profiler.experimental.stop()
    print(len(glob.glob("traced/plugins/profile/*/*.xplane.pb")))
    shutil.rmtree("traced")
    for n in range(6):
        f(tf.constant(1.0))
elif way == "cprofile_thread":
    import cProfile
    import io
    import pstats
    import threading

    profiles = []

    def work():
        profile = cProfile.Profile()
        profile.enable()
        for n in range(10):
            step(n)
        profile.disable()
        profiles.append(profile)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    out = io.StringIO()
    stats = pstats.Stats(profiles[0], stream=out)
    print(sorted((name[2], calls[0]) for name, calls in stats.stats.items()))
elif way == "trace_module":
    import trace

    tracer = trace.Trace(count=1, trace=0)
    tracer.runfunc(lambda: [step(n) for n in range(6)])
    print(sorted((k[1], v) for k, v in tracer.results().counts.items() if k[0] == __file__)[:5])
    print(sorted({k[0].rpartition("/")[2] for k in tracer.results().counts}))
elif way == "monitoring":
    if sys.version_info >= (3, 12):
        m = sys.monitoring
        print([m.get_tool(n) for n in (0, 1, 2, 5)])
        m.use_tool_id(m.PROFILER_ID, "mine")
        seen = []
        m.register_callback(m.PROFILER_ID, m.events.PY_START, lambda code, offset: seen.append(code.co_name))
        m.set_events(m.PROFILER_ID, m.events.PY_START)
        for n in range(6):
            step(n)
        m.set_events(m.PROFILER_ID, 0)
        print(seen.count("step"), sorted(set(seen)))
        m.free_tool_id(m.PROFILER_ID)
    else:
        print([step(n) for n in range(6)])
else:
    import timeit

    print(timeit.timeit("step(1)", globals=globals(), number=50) > 0, timeit.repeat("pass", number=1, repeat=2) != [])
    timer = timeit.Timer("x()", "x = int")
    try:
        timeit.Timer("1/0").timeit(1)
    except ZeroDivisionError:
        timer.print_exc()
