"""What a program that is followed can see of it: all of it.  Anything else is as in plain Python.

`tests/capture/test_same.py` holds a program's view of its process against this list, and runs programs both ways.
"""

from __future__ import annotations

from stepscope.records import dataclass


@dataclass(frozen=True)
class Visible:
    """One difference to plain Python.

    Attributes:
        name: of the difference.
        what: where a program would find it.
        reason: why it is there.
        only: when it is there; empty for always.
    """

    name: str
    what: str
    reason: str
    only: str = ""


VISIBLE = (
    Visible(
        "modules",
        "`sys.modules` has Stepscope, its libraries (grpc, protobuf) and modules of Python that they import",
        "the capture runs in the process; nothing of it is imported under a name that the program could mean",
    ),
    Visible(
        "meta_path",
        "`sys.meta_path` begins with objects that find nothing themselves",
        "a framework has to be met once its import has ended; they go when nothing more is awaited",
    ),
    Visible(
        "signals",
        "`signal.getsignal` of SIGTERM and SIGUSR2 names a handler where the program has set none",
        "a capture can be asked for while the program runs, and one that records is saved when a scheduler ends it; a"
        " handler of the program replaces ours",
    ),
    Visible(
        "fds",
        "some open files with high numbers; one that is being opened has a low one for a moment",
        "the profile being written, and the door for `stepscope capture`; they do not survive an `exec`",
    ),
    Visible(
        "task",
        "threads of the system that `threading` does not list; none of those that wait lives while the program forks",
        "sampling, writing and answering must not wait for the program",
    ),
    Visible(
        "adopted processes",
        "a program that adopts orphans, by PR_SET_CHILD_SUBREAPER or as the first process of a container, adopts the"
        " process that converts what was recorded; on other systems than Linux that is a child of any program",
        "each process has a parent, and an adopter has to expect processes that it did not start",
    ),
    Visible(
        "processor time",
        "`time.process_time`, RLIMIT_CPU and, while the program runs, ITIMER_PROF count our work, too",
        "the capture runs in the process; at the program's end its timers stand still while the capture is saved",
    ),
    Visible(
        "audit events",
        "functions of `sys.addaudithook` are told of ours, too, also on the program's threads, such as `sys._getframe`",
        "the interpreter tells them of whatever runs in the process",
    ),
    Visible(
        "garbage",
        "Python's collector runs at other moments; with `gc.DEBUG_SAVEALL`, `gc.garbage` has objects of ours",
        "objects that we make in the process count like those of the program",
    ),
    Visible("atexit", "`atexit._ncallbacks()` is higher", "a capture that records is saved when the program ends"),
    Visible(
        "functions",
        "`os._exit` and `os.exec*` are stand-ins, equal to the functions and with their attributes",
        "a capture is saved before the process ends hard; Python 3.11 calls a function of C past the place where later"
        " versions let it be seen, so that it has to be replaced",
        only="Python 3.11",
    ),
    Visible(
        "functions that the program replaces",
        "what the program puts in the place of functions of Python's modules, such as `time.perf_counter_ns` or"
        " `builtins.__import__`, is called by us, too; not of `_thread`, `print` and `subprocess.Popen`",
        "the capture is Python in the same process, and imports what it needs when it needs it",
    ),
    Visible(
        "private functions",
        "functions inside of frameworks that no program calls by name: `jax._src.pjit._cpp_pjit` and `_infer_params`,"
        " `jax._src.api.argnums_partial2`,"
        " `torch.autograd._engine_run_backward` and `tensorflow.python.eager.imperative_grad.imperative_grad` are"
        " stand-ins; `torch.optim.Optimizer._optimizer_step_code` has one default more",
        "steps are seen where frameworks pass on their way, instead of in functions that the program holds",
    ),
    Visible(
        "calls for profilers",
        "profilers of the program count a call of the function `observed` in C for each `step` of an optimizer of"
        " PyTorch, and calls of `find_spec` of the objects in `sys.meta_path`",
        "PyTorch's compiler takes a call for one that does nothing, and makes the same graphs; what is called so,"
        " profilers do not see; a capture can be asked for at any time",
    ),
    Visible(
        "calls under way for profilers",
        "a profiler that the program sets with `sys.setprofile` in another thread than the main one, or in others with"
        " `threading.setprofile_all_threads`, hears of the return from the C call that is under way there",
        "the interpreter tells of the end of each call whose beginning a hook saw; only on the main thread can that be"
        " held back; with the program's profiler ours goes",
        only="while Python's calls are recorded",
    ),
    Visible(
        "stand-ins of Keras",
        "`type()` of `CallbackList.on_train_batch_begin`, `on_train_batch_end` and `Optimizer.apply` is not that of"
        " functions; they are equal to them, have their attributes, and are pickled as them",
        "before Python 3.12 the interpreter calls a function without a look at how it wants to be called",
        only="Python 3.11",
    ),
    Visible(
        "stand-ins of profilers",
        "the same of the functions that start the framework's profiler, of Orbax' `save`, and of those by which"
        " TensorFlow and PyTorch decide to compile",
        "the profiler is given up when the program wants it; saves are ranges; compilations have a reason",
        only="while a capture runs",
    ),
    Visible(
        "weak references",
        "`weakref.getweakrefcount` of optimizers, of iterators of loaders and of `tf.function`s is one higher",
        "two that live one after the other at the same address are told apart without keeping either",
        only="until the steps are captured",
    ),
    Visible(
        "profiler",
        "`torch.autograd._profiler_enabled()` is true, and profilers of the program find the framework's in use",
        "the framework's profiler records; it is given up at once when the program starts one",
        only="while a capture runs",
    ),
    Visible(
        "swap_tensors",
        "`torch.utils.swap_tensors` refuses tensors that recorded ops took; a program that has PyTorch swap where it"
        " converts modules, by `torch.__future__`, is recorded without the sizes of operands, and swaps",
        "PyTorch's profiler refers weakly to the operands of which it records the sizes",
        only="while a capture runs, and with `host_tracer_level=3` until it is written",
    ),
    Visible(
        "gc.callbacks",
        "`gc.callbacks` has one more",
        "a step that Python's collector made long is told from one that the program made long",
        only="with `--watch`",
    ),
    Visible(
        "exception",
        "an exception that says that memory is used up has the attribute `_stepscope_sentence`",
        "the reason is told once, when the program ends; Python refers to no such exception weakly",
        only="when memory is used up",
    ),
    Visible(
        "stderr",
        "lines that begin with `stepscope`",
        "what was captured, and what could not be",
    ),
    Visible(
        "stderr of profilers",
        "lines that the framework's profiler writes: of Kineto `USDT:`, and once `ERROR: External init callback` where"
        " it is started on another thread than the one that imported PyTorch; of PyTorch `Toggling CPU activity` where"
        " GPUs are recorded, the main thread waits for another one and nothing has steps, and `disableProfiler called"
        " but no active profiling session found` where a profiler of the program warms up when a capture starts",
        "it writes them for whoever starts it, to the stream of C itself, and offers no way to be quiet: only to take"
        " that stream from the program would hide them, and what the program writes meanwhile",
        only="while a capture runs",
    ),
)  # fmt: skip
