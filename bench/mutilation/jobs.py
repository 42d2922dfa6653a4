"""Small jobs with a known bottleneck, played through and written as PyTorch, JAX or TensorFlow would record them.

A job is what its thread does in a step.  Playing it gives each piece of work a time by three rules: a thread does one
thing after another, a stream does its work in order and not before its launch, and a wait ends when the streams are
empty.  So the right answer is known before anything is written: it follows from the same rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from bench import wire
from bench.mutilation.known import Known
from bench.mutilation.rows import PS_PER_NS, PS_PER_US, Plane, Recording, Row, read_kineto, stat_of

STEPS = 8
START_UNIX_NS = 1_790_000_000_000_000_000
LATENCY_US = 6  # from the start of a launch to the start of its kernel on an idle stream: what CUPTI shows on a Hopper
CALL_US = 5
COMPUTE, COMMUNICATION, COPY = 7, 20, 14


@dataclass(frozen=True)
class Piece:
    """Something that took place: what it is, in which words of its kind, when (us), and what links it to its launch."""

    what: str
    name: str
    line: Any
    start: float
    end: float
    link: int = 0


@dataclass
class Play:
    """The pieces of a job so far: the clock of its thread and of each stream, in us."""

    now: float = 1_000.0
    free: dict[int, float] = field(default_factory=dict)
    pieces: list[Piece] = field(default_factory=list)
    links: int = 0
    busy: float = 0.0  # of the device with work that is no collective

    def python(self, us: float, name: str = "compute_stats") -> None:
        """Python that runs on the thread."""
        self._host("python", name, us)

    def input(self, us: float) -> None:
        """The thread asks for its next batch and waits."""
        self._host("input", "next", us)

    def op(self, name: str, host_us: float, device_us: float) -> None:
        """An op that launches a kernel and returns."""
        start = self.now
        self.links += 1
        self.pieces.append(Piece("call", "launch", "main", start + 2, start + 2 + CALL_US, self.links))
        self._device("kernel", name, COMPUTE, start + 2 + LATENCY_US, device_us)
        self._host("op", name, host_us)
        self.busy += device_us

    def collective(self, us: float) -> None:
        """Gradients are reduced on a stream of its own, which waits for the compute stream and holds it up."""
        start = self.now
        self.links += 1
        self.pieces.append(Piece("stream_wait", "wait", "main", start + 1, start + 2))
        self.pieces.append(Piece("call", "launch", "main", start + 3, start + 3 + CALL_US, self.links))
        ready = max(start + 3 + LATENCY_US, self.free.get(COMPUTE, 0.0))
        self._device("collective", "all_reduce", COMMUNICATION, ready, us)
        self.pieces.append(Piece("stream_wait", "wait", "main", start + 10, start + 11))
        self.free[COMPUTE] = self.free[COMMUNICATION]
        self._host("collective_op", "all_reduce", 20)

    def read(self) -> None:
        """The thread reads a number from the device: it waits for all that it launched."""
        start = self.now
        self.links += 1
        self.pieces.append(Piece("call", "copy", "main", start + 3, start + 3 + CALL_US, self.links))
        self._device("copy", "copy", COPY, max([start + 3 + LATENCY_US, *self.free.values()]), 2)
        done = max(self.free.values()) + 3
        self.pieces.append(Piece("wait", "wait", "main", start + 9, done))
        self.pieces.append(Piece("read", "read", "main", start, done + 2))
        self.now = done + 4

    def _host(self, what: str, name: str, us: float) -> None:
        self.pieces.append(Piece(what, name, "main", self.now, self.now + us))
        self.now += us + 2

    def _device(self, what: str, name: str, stream: int, earliest: float, us: float) -> None:
        start = max(earliest, self.free.get(stream, 0.0))
        self.pieces.append(Piece(what, name, stream, start, start + us, self.links))
        self.free[stream] = start + us


def _layers(play: Play, count: int, host_us: float, device_us: float, matmul: str = "half_matmul") -> None:
    """A model: what comes first and last in a step occurs once in it, the layers between are alike."""
    play.op("embedding", host_us, device_us / 2)
    for _ in range(count):
        play.op(matmul, host_us, device_us)
        play.op("activation", host_us, device_us / 2)
    play.op("update", host_us, device_us / 2)


def _healthy(play: Play) -> None:
    play.input(60)
    _layers(play, 10, 25, 650)
    play.read()


def _compute(play: Play) -> None:
    play.input(60)
    _layers(play, 8, 30, 900, "matmul")
    play.read()


def _ahead(play: Play) -> None:
    play.input(60)
    _layers(play, 10, 25, 650)


def _input(play: Play) -> None:
    play.input(12_000)
    _layers(play, 8, 25, 300)
    play.read()


def _python(play: Play) -> None:
    play.input(60)
    _layers(play, 8, 25, 300)
    play.read()
    play.python(11_000)


def _launch(play: Play) -> None:
    play.input(60)
    play.op("embedding", 45, 4)
    for layer in range(220):
        play.op("scale" if layer % 2 else "activation", 45, 4)
    play.op("update", 45, 4)
    play.read()


def _communication(play: Play) -> None:
    play.input(60)
    _layers(play, 8, 25, 350)
    play.collective(9_000)
    play.op("update", 25, 200)
    play.read()


def _sync(play: Play) -> None:
    play.input(60)
    play.op("embedding", 30, 50)
    for _ in range(40):
        play.op("half_matmul", 30, 100)
        play.read()
        play.python(160, "log_loss")
    play.op("update", 30, 50)
    play.read()


@dataclass(frozen=True)
class Kind:
    """A bottleneck: what a step does, and what is right to say of it."""

    step: Callable[[Play], None]
    verdicts: tuple[str, ...]
    first: tuple[str, ...]


_INPUT = ("input_preprocessing", "input_python", "input_no_prefetch", "input_file_read")
KINDS = {
    "healthy": Kind(_healthy, ("compute_bound",), ("none",)),
    "compute": Kind(_compute, ("compute_bound",), ("none", "low_precision")),
    "ahead": Kind(_ahead, ("compute_bound",), ("none",)),
    "input": Kind(_input, ("input_bound",), _INPUT),
    "python": Kind(_python, ("host_bound",), ("python_overhead",)),
    "launch": Kind(_launch, ("launch_bound", "host_bound"), ("eager_dispatch", "small_batch")),
    "communication": Kind(_communication, ("communication_bound",), ("communication_bound",)),
    "sync": Kind(_sync, ("host_bound", "launch_bound"), ("host_sync", "python_overhead")),
}


def play(kind: str, steps: int = STEPS) -> tuple[list[Piece], Known]:
    """The pieces of a job with a bottleneck, and its right answer."""
    job, made = KINDS[kind], Play()
    starts = []
    for number in range(steps):
        starts.append(made.now)
        begin = made.now
        made.now += 20
        job.step(made)
        made.now += 10
        made.pieces.append(Piece("mark", str(number), "main", begin, made.now))
        made.now += 5
    span = made.now - starts[0]
    # Where the thread runs ahead, the device's work is what lasts, and a step is as long as its work.
    step_us = made.busy / steps if kind == "ahead" else span / steps
    gain = step_us / (made.busy / steps)
    return made.pieces, Known(job.verdicts, job.first, (step_us / 1000, step_us / 1000), gain)


def draw(framework: str, kind: str, steps: int = STEPS) -> tuple[Recording, Known]:
    """A job as a framework records it, and its right answer."""
    pieces, known = play(kind, steps)
    if framework.startswith("jax") and kind == "input":  # a generator that the loop calls is Python and input
        known = replace(known, verdicts=("input_bound", "host_bound"), first=(*known.first, "python_overhead"))
    return FRAMEWORKS[framework](pieces), known


# ---- PyTorch ---------------------------------------------------------------------------------------------------------

_PROCESS = 4242
_TORCH_OPS = {
    "half_matmul": ("aten::mm", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize2x1x1"),
    "matmul": ("aten::mm", "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x64x8_stage3_ffma"),
    "activation": ("aten::gelu", "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>"),
    "scale": ("aten::mul", "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float>>"),
    "embedding": (
        "aten::embedding",
        "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long>",
    ),
    "update": ("aten::_foreach_add_", "void at::native::multi_tensor_apply_kernel<at::native::TensorListMetadata<2>>"),
}
_LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
_REDUCE = {"Collective name": "allreduce", "In msg nelems": 25_000_000, "Out msg nelems": 25_000_000, "dtype": "Float",
           "Group size": 8, "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]"}  # fmt: skip


def _torch(pieces: list[Piece], hip: bool = False) -> Recording:
    runtime = "hip" if hip else "cuda"
    device = {"id": 0, "name": "AMD Instinct MI300X" if hip else "NVIDIA H100 80GB HBM3", "numSms": 304 if hip else 132,
              "totalGlobalMem": 85_045_739_520, "computeMajor": 9, "computeMinor": 4 if hip else 0,
              "warpSize": 64 if hip else 32, "maxThreadsPerBlock": 1024}  # fmt: skip
    events: list[dict[str, Any]] = []
    for process, thread, title in ((_PROCESS, _PROCESS, "thread 4242 (python)"), (0, COMPUTE, "stream 7"),
                                   (0, COMMUNICATION, "stream 20")):  # fmt: skip
        label = "GPU 0" if process == 0 else "CPU"
        events.append(_name("process_name", process, 0, {"name": "python"}))
        events.append(_name("process_labels", process, 0, {"labels": label}))
        events.append(_name("thread_name", process, thread, {"name": title}))
    first, last = min(one.start for one in pieces), max(one.end for one in pieces)
    events.append(_torch_row("python_function", "train.py(10): main", _PROCESS, _PROCESS, first - 50, last + 50,
                             {"Python id": 1, "Python parent id": None}))  # fmt: skip
    for number, piece in enumerate(pieces, 2):
        events += _torch_rows(piece, number, runtime)
    events += _torch_span(first - 60, last + 60)
    header = {"schemaVersion": 1, "deviceProperties": [device], "displayTimeUnit": "ms",
              "baseTimeNanoseconds": 1_759_276_800_000_000_000, "traceName": "trace.json",
              **({"hip_runtime_version": 60400} if hip else {"cuda_runtime_version": 12040})}  # fmt: skip
    if any(piece.what == "collective" for piece in pieces):
        header["distributedInfo"] = {"backend": "nccl", "rank": 0, "world_size": 8}
    return read_kineto({**header, "traceEvents": events})


def _torch_span(first: float, last: float) -> list[dict[str, Any]]:
    """What PyTorch says of the recording itself."""
    span = _torch_row("Trace", "PyTorch Profiler (0)", 0, 0, first, last, {"Op count": 0})
    marks = ({"ph": "i", "s": "g", "name": text, "pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": at}
             for text, at in (("Iteration Start: PyTorch Profiler", first), ("Record Window End", last)))  # fmt: skip
    return [{**span, "pid": "Spans", "tid": "PyTorch Profiler"}, *marks]


def _name(what: str, process: int, thread: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "ts": 0, "args": args}


def _torch_row(
    category: str, name: str, process: int, line: int, start: float, end: float, args: dict[str, Any]
) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": process, "tid": line, "ts": round(start, 3),
            "dur": round(end - start, 3), "args": args}  # fmt: skip


def _torch_rows(piece: Piece, number: int, runtime: str) -> list[dict[str, Any]]:
    host = (_PROCESS, _PROCESS, piece.start, piece.end)
    link = {"External id": 10_000 + piece.link, "correlation": piece.link}
    match piece.what:
        case "mark":
            return [_torch_row("user_annotation", f"ProfilerStep#{piece.name}", *host, {"External id": number})]
        case "python":
            args = {"Python id": number, "Python parent id": 1}
            return [_torch_row("python_function", f"train.py(41): {piece.name}", *host, args)]
        case "input":
            return [_torch_row("user_annotation", _LOADER, *host, {"External id": number})]
        case "op":
            args = {"External id": 20_000 + number, "Input Dims": [[4096, 4096], [4096, 4096]],
                    "Input type": ["c10::BFloat16" if "half" in piece.name else "float"] * 2}  # fmt: skip
            return [_torch_row("cpu_op", _TORCH_OPS[piece.name][0], *host, args)]
        case "collective_op":
            return [_torch_row("cpu_op", "c10d::allreduce_", *host, {"External id": number}),
                    _torch_row("cpu_op", "record_param_comms", _PROCESS, _PROCESS, piece.start + 1, piece.end - 1,
                               {"External id": 20_000 + number, **_REDUCE})]  # fmt: skip
        case "read":
            inner = (_PROCESS, _PROCESS, piece.start + 1, piece.end - 1)
            return [
                _torch_row("cpu_op", "aten::item", *host, {"External id": 20_000 + number}),
                _torch_row("cpu_op", "aten::_local_scalar_dense", *inner, {"External id": 30_000 + number}),
            ]
        case "wait":
            return [
                _torch_row("cuda_runtime", f"{runtime}StreamSynchronize", *host, {"correlation": 1_000_000 + number})
            ]
        case "stream_wait":
            return [_torch_row("cuda_runtime", f"{runtime}StreamWaitEvent", *host, {"correlation": 1_000_000 + number})]
        case "call":
            call = "MemcpyAsync" if piece.name == "copy" else "LaunchKernel"
            flow = {
                "id": piece.link,
                "cat": "ac2g",
                "name": "ac2g",
                "ts": piece.start,
                "pid": _PROCESS,
                "tid": _PROCESS,
            }
            return [_torch_row("cuda_runtime", runtime + call, *host, link), {"ph": "s", **flow}]
    return _torch_device_rows(piece, link)


def _torch_device_rows(piece: Piece, link: dict[str, Any]) -> list[dict[str, Any]]:
    line = COMPUTE if piece.what == "copy" else piece.line
    args = {**link, "device": 0, "context": 1, "stream": line}
    flow = {
        "ph": "f",
        "id": piece.link,
        "cat": "ac2g",
        "name": "ac2g",
        "ts": piece.start,
        "pid": 0,
        "tid": line,
        "bp": "e",
    }
    times = (0, line, piece.start, piece.end)
    if piece.what == "copy":
        row = _torch_row("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", *times, {**args, "bytes": 4})
    elif piece.what == "collective":
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        row = _torch_row("kernel", name, *times, {**args, **_REDUCE, "grid": [16, 1, 1], "block": [512, 1, 1]})
    else:
        shape = {"grid": [528, 1, 1], "block": [128, 1, 1], "registers per thread": 32, "shared memory": 0}
        row = _torch_row("kernel", _TORCH_OPS[piece.name][1], *times, {**args, **shape})
    return [row, flow]


# ---- XSpace: JAX and TensorFlow --------------------------------------------------------------------------------------


@dataclass
class Space:
    """Rows of an XSpace file that is being drawn; lines are made as they are named."""

    recording: Recording = field(default_factory=lambda: Recording("xspace", {"planes": [], "others": []}))

    def plane(self, name: str, **stats: float | int | str) -> int:
        """A plane with stats of its own."""
        names = dict(enumerate(stats, 1))
        fields: list[wire.Field] = [(1, wire.VARINT, len(self._planes), b""), (2, wire.LENGTH, 0, name.encode())]
        for number, value in zip(names, stats.values(), strict=True):
            kind, found = stat_of(value)
            content = wire.text(kind, found) if isinstance(found, bytes) else wire.number(kind, found)
            fields.append((6, wire.LENGTH, 0, wire.number(1, number) + content))
        self._planes.append(Plane(name, fields, names, []))
        return len(self._planes) - 1

    def line(self, plane: int, number: int, name: str) -> tuple[int, int]:
        """A line of a plane."""
        fields = [(1, wire.VARINT, number, b""), (2, wire.LENGTH, 0, name.encode())]
        self._planes[plane].lines.append((fields, START_UNIX_NS, name))
        return plane, len(self._planes[plane].lines) - 1

    def row(
        self, line: tuple[int, int], title: str, start_us: float, end_us: float, /, **stats: float | int | str
    ) -> None:
        """An event; names of stats are those of the file."""
        start, end = (START_UNIX_NS * PS_PER_NS + round(us * PS_PER_US) for us in (start_us, end_us))
        found = {key: stat_of(value) for key, value in stats.items()}
        self.recording.rows.append(Row("", "", line, title, start, end - start, found, ([], [])))

    def finish(self, start_us: float, end_us: float) -> Recording:
        """The recording, with the plane that says when it began and ended."""
        plane = self.plane("Task Environment")
        names = {1: "profile_start_time", 2: "profile_stop_time"}
        self._planes[plane].stat_names = names
        for number, us in ((1, start_us), (2, end_us)):
            content = wire.number(1, number) + wire.number(3, START_UNIX_NS + round(us * PS_PER_US) // PS_PER_NS)
            self._planes[plane].fields.append((6, wire.LENGTH, 0, content))
        return self.recording

    @property
    def _planes(self) -> list[Plane]:
        planes: list[Plane] = self.recording.head["planes"]
        return planes


_KERNEL = "regs:32 static_shared:0 dynamic_shared:0 grid:512,1,1 block:256,1,1 occ_pct:100"
_HLO_OPS = {
    "half_matmul": ("cublas-gemm.1", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_tilesize128x128x64", "dot_general"),
    "matmul": ("cublas-gemm.2", "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x64x8_stage3_ffma", "dot_general"),
    "activation": ("loop_fusion.3", "loop_fusion_3", "tanh"),
    "scale": ("loop_multiply.4", "loop_multiply_4", "mul"),
    "embedding": ("gather_fusion.6", "gather_fusion_6", "gather"),
    "update": ("loop_fusion.5", "loop_fusion_5", "sub"),
}


def _gpu_plane(space: Space) -> dict[Any, tuple[int, int]]:
    gpu = space.plane("/device:GPU:0", device_vendor="Nvidia", clock_rate=1_980_000, core_count=132,
                      memory_size=85_045_739_520, compute_cap_major=9, compute_cap_minor=0)  # fmt: skip
    return {
        COMPUTE: space.line(gpu, 7, "Stream #7(Compute)"),
        COMMUNICATION: space.line(gpu, 20, "Stream #20(Compute)"),
        COPY: space.line(gpu, 14, "Stream #14(MemcpyD2H)"),
    }


def _jax_gpu(pieces: list[Piece]) -> Recording:
    space = Space()
    host = space.plane("/host:CPU")
    main, pool = space.line(host, 77, "python"), space.line(host, 78, "tf_pjrt_thread_pool/78")
    lines = _gpu_plane(space)
    first, last = min(one.start for one in pieces), max(one.end for one in pieces)
    space.row(main, "$train.py:10 main", first - 50, last + 50)
    for start, end, _ in _programs(pieces):
        space.row(main, "PjitFunction(train_step)", start - 1, end + 1)
        space.row(main, "PjRtStreamExecutorLoadedExecutable::Execute", start - 0.5, end + 0.5)
    for piece in pieces:
        _jax_host_row(space, main, pool, piece)
        if piece.what in ("kernel", "collective", "copy"):
            _jax_gpu_row(space, lines, piece)
    return _reread(space.finish(first - 100, last + 100))


def _programs(pieces: list[Piece]) -> list[tuple[float, float, int]]:
    """Runs of ops without anything else of the thread between them: what is compiled together."""
    runs: list[tuple[float, float, int]] = []
    open_run = False
    for piece in sorted(pieces, key=lambda one: one.start):
        if piece.what in ("op", "collective_op"):
            # Small ops are programs of their own: nothing was compiled together.
            if open_run and not _is_small(pieces):
                runs[-1] = (runs[-1][0], piece.end, runs[-1][2] + 1)
            else:
                runs.append((piece.start, piece.end, 1))
            open_run = True
        elif piece.what in ("read", "python", "input", "mark"):
            open_run = False
    return runs


def _is_small(pieces: list[Piece]) -> bool:
    return any(piece.name == "scale" for piece in pieces)


def _jax_host_row(space: Space, main: tuple[int, int], pool: tuple[int, int], piece: Piece) -> None:
    match piece.what:
        case "mark":
            space.row(main, "train", piece.start, piece.end, step_num=int(piece.name), _r=1)
        case "python":
            space.row(main, f"$train.py:41 {piece.name}", piece.start, piece.end)
        case "input":
            space.row(main, "$data.py:12 __next__", piece.start, piece.end)
        case "call":
            call = "cuMemcpyDtoHAsync_v2" if piece.name == "copy" else "cuLaunchKernel"
            line = pool if piece.name == "copy" else main
            space.row(line, call, piece.start, piece.end, correlation_id=piece.link)
        case "read":
            space.row(main, "$array.py:320 __float__", piece.start, piece.end)
            space.row(main, "$array.py:650 _value", piece.start + 0.5, piece.end - 0.5)
            space.row(pool, "CopyRawToHost", piece.start + 2, piece.end - 1)


def _jax_gpu_row(space: Space, lines: dict[Any, tuple[int, int]], piece: Piece) -> None:
    times = (lines[piece.line], piece.start, piece.end)
    if piece.what == "copy":
        details = "kind_src:device kind_dst:pinned size:4 dest:0 async:1"
        space.row(times[0], "MemcpyD2H", *times[1:], correlation_id=piece.link, memcpy_details=details)
        return
    op, kernel, jax = _HLO_OPS.get(
        piece.name, ("all-reduce-start.1", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "psum")
    )
    space.row(times[0], kernel, *times[1:], correlation_id=piece.link, kernel_details=_KERNEL, hlo_op=op,
              hlo_module="jit_train_step", program_id=5, name=f"jit(train_step)/{jax}")  # fmt: skip


def _jax_tpu(pieces: list[Piece]) -> Recording:
    space = Space()
    host = space.plane("/host:CPU")
    main = space.line(host, 77, "python")
    tpu = space.plane("/device:TPU:0", device_type_string="TPU v5 lite", peak_teraflops_per_second=202.7)
    modules, ops = space.line(tpu, 2, "XLA Modules"), space.line(tpu, 3, "XLA Ops")
    first, last = min(one.start for one in pieces), max(one.end for one in pieces)
    space.row(main, "$train.py:10 main", first - 50, last + 50)
    device = sorted((one for one in pieces if one.what in ("kernel", "collective")), key=lambda one: one.link)
    done = 0
    for number, (start, end, count) in enumerate(_programs(pieces), 1):
        work, done = device[done : done + count], done + count
        space.row(main, "PjitFunction(train_step)", start - 1, end + 1)
        space.row(main, "PJRT_LoadedExecutable_Execute", start, end, _pt=12, _p=number)
        space.row(modules, "jit_train_step(2433868464432466958)", work[0].start, work[-1].end, run_id=number, _ct=12,
                  _c=number)  # fmt: skip
        for piece in work:
            _tpu_row(space, ops, piece)
    for piece in pieces:
        if piece.what != "call":
            _jax_host_row(space, main, main, piece)
    space.recording.rows = [row for row in space.recording.rows if row.name != "CopyRawToHost"]
    return _reread(space.finish(first - 100, last + 100))


_TPU_OPS = {
    "embedding": ("gather.6", "bf16[4096,4096]{1,0} gather(bf16[32000,4096]{1,0} %p2, s32[4096]{0} %p3)", "gather"),
    "update": ("fusion.5", "f32[4096,4096]{1,0} fusion(f32[4096,4096]{1,0} %p4), kind=kLoop", "loop fusion"),
    "half_matmul": ("fusion.1", "bf16[4096,4096]{1,0} fusion(bf16[4096,4096]{1,0} %p0)", "convolution fusion"),
    "matmul": ("fusion.2", "f32[4096,4096]{1,0} fusion(f32[4096,4096]{1,0} %p0)", "convolution fusion"),
    "activation": ("fusion.3", "bf16[4096,4096]{1,0} fusion(bf16[4096,4096]{1,0} %p1), kind=kLoop", "loop fusion"),
    "scale": ("fusion.4", "bf16[64]{0} fusion(bf16[64]{0} %p5), kind=kLoop", "loop fusion"),
    "all_reduce": ("all-reduce.1", "f32[25000000]{0} all-reduce(f32[25000000]{0} %p0)", "all-reduce"),
}


def _tpu_row(space: Space, ops: tuple[int, int], piece: Piece) -> None:
    op, text, category = _TPU_OPS[piece.name]
    space.row(ops, f"%{op} = {text}", piece.start, piece.end, hlo_op=op, hlo_category=category)


_TF_OPS = {
    "half_matmul": ("model/dense/MatMul:MatMul", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_tilesize128x128x64"),
    "matmul": ("model/dense/MatMul:MatMul", "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x64x8_stage3_ffma"),
    "activation": ("model/dense/Gelu:Gelu", "void tensorflow::functor::GeluKernel<float>"),
    "scale": ("Mul:Mul", "Mul_GPU_DT_FLOAT_DT_FLOAT_kernel"),
    "embedding": ("model/embedding/GatherV2:GatherV2", "void tensorflow::GatherOpKernel<float, long>"),
    "update": ("Adam/update/ResourceApplyAdam:ResourceApplyAdam", "void tensorflow::functor::ApplyAdamKernel<float>"),
    "all_reduce": ("CollectiveReduceV2:CollectiveReduceV2", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
}


def _tf_gpu(pieces: list[Piece]) -> Recording:
    space = Space()
    host = space.plane("/host:CPU")
    main, executor = space.line(host, 77, "python3"), space.line(host, 78, "tf_Compute/78")
    data = space.line(host, 79, "tf_data_private_threadpool/79")
    lines = _gpu_plane(space)
    first, last = min(one.start for one in pieces), max(one.end for one in pieces)
    space.row(main, "$train.py:10 main", first - 50, last + 50)
    eager = _is_small(pieces)
    for number, (start, end, _) in enumerate(_programs(pieces), 1):
        name = "EagerLocalExecute: Mul" if eager else "EagerLocalExecute: __inference_train_step_812"
        space.row(main, name, start - 1, end + 1)
        if not eager:
            space.row(main, "FunctionRun", start - 0.5, end + 0.5, _pt=0, _p=number, id=number)
            space.row(executor, "ExecutorState::Process", start, end, _ct=0, _c=number, id=number, iter_num=0)
    for piece in pieces:
        _tf_row(space, piece, main, main if eager else executor, data, lines)
    return _reread(space.finish(first - 100, last + 100))


def _tf_row(
    space: Space, piece: Piece, main: tuple[int, int], executor: tuple[int, int], data: tuple[int, int],
    lines: dict[Any, tuple[int, int]],
) -> None:  # fmt: skip
    match piece.what:
        case "mark":
            space.row(main, "train", piece.start, piece.end, step_num=int(piece.name), _r=1)
        case "python":
            space.row(main, f"$train.py:41 {piece.name}", piece.start, piece.end)
        case "input":
            space.row(main, "EagerLocalExecute: IteratorGetNext", piece.start - 1, piece.end + 1)
            space.row(main, "IteratorGetNextOp::DoCompute", piece.start, piece.end, id=7)
            space.row(main, "Iterator::Prefetch", piece.start + 1, piece.end - 1, step_name="get_next", id=1)
            space.row(data, "Iterator::Prefetch::Map", max(piece.start - 20, 1), piece.end - 2, id=2, parent_id=1)
        case "op" | "collective_op":
            space.row(executor, _TF_OPS[piece.name][0], piece.start, piece.end)
        case "call":
            call = "cuMemcpyDtoHAsync_v2" if piece.name == "copy" else "cuLaunchKernel"
            line = main if piece.name == "copy" else executor
            space.row(line, call, piece.start, piece.end, correlation_id=piece.link)
        case "stream_wait":
            space.row(executor, "cuStreamWaitEvent", piece.start, piece.end)
        case "read":
            space.row(main, "$ops.py:376 numpy", piece.start, piece.end)
            space.row(main, "EagerTensor::CopyToHost", piece.start + 0.5, piece.end - 0.5)
        case "wait":
            space.row(main, "cuStreamSynchronize", piece.start, piece.end)
        case "copy":
            details = "kind_src:device kind_dst:pageable size:4 dest:0 async:1"
            space.row(
                lines[COPY], "MemcpyD2H", piece.start, piece.end, correlation_id=piece.link, memcpy_details=details
            )
        case "kernel" | "collective":
            op, kernel = _TF_OPS[piece.name]
            space.row(lines[piece.line], kernel, piece.start, piece.end, correlation_id=piece.link,
                      kernel_details=_KERNEL, tf_op=op)  # fmt: skip


def _reread(recording: Recording) -> Recording:
    """The recording as its own file says, so that each row says what it is."""
    from bench.mutilation.rows import read_xspace

    return read_xspace(recording.encode())


FRAMEWORKS: dict[str, Callable[[list[Piece]], Recording]] = {
    "torch": _torch,
    "torch-hip": lambda pieces: _torch(pieces, hip=True),
    "jax-gpu": _jax_gpu,
    "jax-tpu": _jax_tpu,
    "tf-gpu": _tf_gpu,
}
