"""`stepscope doctor`: what would stand in the way of a capture, and why a page is empty."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest
from program_runs import run_command

import stepscope
from stepscope.doctor import machine as doctor
from stepscope.doctor.logdir import examine_logdir
from stepscope.doctor.machine import Machine
from stepscope.formats.xspace.writer import write
from stepscope.model import PlaneKind, TraceBuilder


class Root:
    """A machine drawn as files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment: dict[str, str] = {}

    def put(self, path: str, text: str = "") -> Root:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return self

    def machine(self) -> Machine:
        return Machine(self.folder, self.environment, (self.folder / "site-packages",))


@pytest.fixture
def root(tmp_path) -> Root:
    return Root(tmp_path)


@pytest.fixture
def gpu(root, monkeypatch) -> Root:
    """A machine with a GPU, and frameworks that can use it."""
    monkeypatch.setattr(doctor, "builds", list)
    root.put("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H100\nIRQ: 5\n")
    return root.put("dev/nvidiactl").put("site-packages/nvidia/cuda_cupti/lib/libcupti.so.12")


def told(root: Root) -> dict[str, tuple[str, str]]:
    return {check.check: (check.state, check.found) for check in doctor.gpus(root.machine())}


def test_a_machine_on_which_all_is_well(gpu):
    library = gpu.folder / "site-packages/nvidia/cuda_cupti/lib/libcupti.so.12"

    assert told(gpu) == {
        "gpu": ("ok", "1 NVIDIA: NVIDIA H100"),
        "cupti library": ("ok", str(library)),
        "cupti permission": ("ok", "the driver lets every user profile"),
        "other CUPTI client": ("ok", "none was found"),
    }


@pytest.mark.parametrize("value", ["", "-1"], ids=repr)
def test_hidden_gpus(gpu, value):
    gpu.environment["CUDA_VISIBLE_DEVICES"] = value

    check = doctor.gpus(gpu.machine())[0]
    assert (check.state, check.remedy) == (
        "problem",
        f"CUDA_VISIBLE_DEVICES={value!r} hides them from programs; unset it",
    )


def test_gpus_that_a_container_did_not_get(gpu):
    (gpu.folder / "dev/nvidiactl").unlink()

    check = doctor.gpus(gpu.machine())[0]
    assert (check.state, check.remedy) == (
        "problem",
        "their device files are missing; run the container with --gpus all",
    )


def test_the_library_on_the_path_comes_before_all_others(gpu):
    gpu.put("usr/local/cuda-12.4/extras/CUPTI/lib64/libcupti.so.12").put("own/libcupti.so.13")
    assert told(gpu)["cupti library"][1].endswith("nvidia/cuda_cupti/lib/libcupti.so.12")

    gpu.environment["LD_LIBRARY_PATH"] = f"/nothing:{gpu.folder}/own"
    assert told(gpu)["cupti library"] == ("ok", f"{gpu.folder}/own/libcupti.so.13")


def test_the_library_in_cudas_own_folder(gpu):
    shutil.rmtree(gpu.folder / "site-packages")
    gpu.put("usr/local/cuda-12.4/extras/CUPTI/lib64/libcupti.so.12")

    assert told(gpu)["cupti library"][1].endswith("cuda-12.4/extras/CUPTI/lib64/libcupti.so.12")


RESTRICTED = "RmLogonRC: 1\nRmProfilingAdminOnly: 1\n"


@pytest.mark.parametrize(
    ("capabilities", "state"),
    [("0000000000000000", "problem"), ("00000000a80425fb", "problem"), ("000001ffffffffff", "ok")],
    ids=["user", "root in a container", "administrator"],
)
def test_a_driver_that_lets_only_administrators_profile(gpu, capabilities, state):
    gpu.put("proc/driver/nvidia/params", RESTRICTED).put("proc/self/status", f"Name: x\nCapEff:\t{capabilities}\n")

    check = doctor.cupti_permission(gpu.machine())

    assert check.state == state
    assert ("NVreg_RestrictProfilingToAdminUsers=0" in check.remedy) == (state == "problem")
    assert ("--cap-add=SYS_ADMIN" in check.remedy) == (state == "problem")


def test_another_profiler_in_the_environment(gpu):
    gpu.environment["CUDA_INJECTION64_PATH"] = "/opt/nsys/libToolsInjection64.so"

    check = doctor.other_client(gpu.machine())
    assert check.state == "problem"
    assert check.remedy == "unset CUDA_INJECTION64_PATH, or run the job outside that profiler"


def test_another_profiler_on_the_machine(gpu):
    gpu.put("proc/12/comm", "nv-hostengine\n").put("proc/13/comm", "bash\n")

    check = doctor.other_client(gpu.machine())
    assert (check.state, check.found) == ("note", "DCGM runs on this machine")


def test_frameworks_that_cannot_use_the_gpu(monkeypatch):
    monkeypatch.setattr(doctor, "_version", {"torch": "2.9.0+cpu", "tensorflow-cpu": "2.21", "jax": "0.10"}.get)

    assert [(check.check, check.state) for check in doctor.builds()] == [
        ("pytorch", "problem"),
        ("tensorflow", "problem"),
        ("jax", "problem"),
    ]


def test_a_build_for_the_cpu_is_a_problem_only_where_there_is_a_gpu(gpu, root, monkeypatch):
    monkeypatch.setattr(doctor, "builds", lambda: [doctor.Check("pytorch", "problem", "cannot use the GPU")])

    assert told(gpu)["pytorch"] == ("problem", "cannot use the GPU")
    shutil.rmtree(gpu.folder / "proc")
    assert "pytorch" not in told(root)


def test_a_clock_that_is_slow(monkeypatch):
    seconds = iter(range(10))
    monkeypatch.setattr(doctor.time, "perf_counter", lambda: next(seconds))

    assert doctor.clock().state == "note"


def test_a_folder_that_cannot_be_written(monkeypatch, tmp_path):
    def refuse(**_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(doctor.tempfile, "TemporaryFile", refuse)

    assert [(check.check, check.state) for check in doctor.writable(tmp_path)] == [
        ("write access", "problem"),
        ("temporary files", "problem"),
    ]


def test_a_machine_without_a_folder_for_temporary_files(monkeypatch, tmp_path):
    def find_none():
        raise FileNotFoundError("No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(doctor.tempfile, "gettempdir", find_none)

    assert doctor.writable(tmp_path)[1].state == "problem"


def test_a_cache_that_cannot_be_written(monkeypatch, tmp_path):
    monkeypatch.setenv("STEPSCOPE_CACHE_DIR", str(tmp_path / "not there" / "cache"))
    assert doctor._cache().state == "ok"

    monkeypatch.setattr(doctor.os, "access", lambda folder, mode: folder != tmp_path)
    assert doctor._cache().state == "note"


def test_a_disk_that_is_nearly_full(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(9, 8, 1))

    assert doctor.writable(tmp_path)[0].state == "note"


# -- a logdir ------------------------------------------------------------------------------------------------------


def profile(folder: Path) -> Path:
    """A profile of three marked steps, with nothing else in it."""
    builder = TraceBuilder("vm", 0, 10**9)
    from stepscope.model import EventKind

    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main", 1)
    for i in range(3):
        line.event("train", i * 10**9, 10**9, EventKind.STEP_MARK, stats={"step_num": i})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vm.xplane.pb").write_bytes(write(builder.build()))
    return folder


def findings(folder: Path) -> dict[str, tuple[str, str, str]]:
    return {check.check: (check.state, check.found, check.remedy) for check in examine_logdir(str(folder)).checks}


def test_each_page_without_content_is_told_with_the_reason_and_the_remedy(tmp_path):
    profile(tmp_path / "plugins/profile/2026_01_01_00_00_00")

    found = {name: told for name, told in findings(tmp_path).items() if name.startswith("page ")}

    assert {"page op-stats", "page kernel-stats", "page memory-profile", "page input-pipeline", "page tf-data"} <= set(
        found
    )
    assert not {"page overview", "page steps"} & set(found)
    assert all(state == "note" and reason.startswith("empty: ") and remedy for state, reason, remedy in found.values())
    assert "shows nothing of the host" in found["page op-stats"][2]
    assert "stepscope prove" in found["page proofs"][2]


def test_a_file_that_cannot_be_read_is_one_problem_that_names_it(tmp_path):
    folder = tmp_path / "plugins/profile/a"
    folder.mkdir(parents=True)
    (folder / "vm.xplane.pb").touch()

    found = findings(tmp_path)

    assert found["a"] == (
        "problem",
        f"{folder / 'vm.xplane.pb'}: the file is empty",
        "the capture did not finish; record it again",
    )
    assert set(found) == {"a", "place"}


def test_a_folder_that_may_not_be_read_comes_before_advice_to_look_elsewhere(tmp_path, monkeypatch):
    profile(tmp_path / "logs/plugins/profile/a")
    scan = os.scandir

    def refused(path):  # permissions would not stop the superuser
        if str(path).endswith("plugins"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refused)
    checks = examine_logdir(str(tmp_path / "logs")).checks

    assert [check.check for check in checks] == ["access", "profiles"]
    assert f"{tmp_path / 'logs/plugins'}: the system does not let you read it" in checks[0].found


def test_what_is_the_same_in_many_runs_is_said_once(tmp_path):
    for run in "abcd":
        profile(tmp_path / "plugins/profile" / run)

    found = findings(tmp_path)

    assert {name for name in found if not name.startswith("page ")} == {"d and 3 more", "place"}


def test_a_problem_is_told_in_full_on_the_terminal(tmp_path):
    folder = profile(tmp_path / "plugins/profile/a")
    whole = (folder / "vm.xplane.pb").read_bytes()
    (folder / "vm.xplane.pb").write_bytes(whole[:-3])

    done = run_command(["-m", "stepscope", "doctor", str(tmp_path)], tmp_path, {"COLUMNS": "60"})

    assert "copy the file again" in " ".join(done.stdout.split())


def test_a_profile_where_tensorboard_does_not_look(tmp_path):
    profile(tmp_path / "run")

    state, found, remedy = findings(tmp_path)["place"]
    assert (state, found) == ("note", f"{tmp_path / 'run'} is not where TensorBoard and XProf look")
    assert "LOGDIR/plugins/profile/run/" in remedy


def test_a_real_capture_without_marks_is_told_what_to_mark(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPSCOPE_TRACER", "host")
    with stepscope.Profile(tmp_path), stepscope.annotate("work"):
        pass

    checks = examine_logdir(str(tmp_path)).checks
    assert any(check.found == "not recorded: step marks" and "stepscope.step(i)" in check.remedy for check in checks)


def test_the_formats_that_can_be_read_are_listed(root):
    (found,) = [check.found for check in doctor.examine_machine(root.machine()).checks if check.check == "reads"]
    assert {"xspace", "kineto", "perfetto", "riegeli"} <= set(found.split(", "))
