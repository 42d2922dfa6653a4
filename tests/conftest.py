"""What several tests need: the shared corpus, the captured bottlenecks, and a cache of their own."""

from __future__ import annotations

import fcntl
import gc
import json
import os
import signal
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from places import folder_of_run, shared_folder

# A drawn example may take long on a busy machine, and that is no failure.
settings.register_profile("stepscope", deadline=None)
settings.load_profile("stepscope")

# Fixtures of fresh captures by the frameworks' own profilers, of captures that only tell, and of the page in a browser.
pytest_plugins = ("scheduling", "warm_python", "framework_captures", "fake_recorder", "browsing", "installed_plugins")

# A shell lets what it runs in the background ignore Ctrl-C, and all that this starts too; jobs here are to feel it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Tests make many objects that live long: walking through them took an eighth of the time of tests of analyses.
gc.set_threshold(20_000, 20, 50)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """No collection walks through the modules and the collected tests."""
    gc.freeze()


def _shared_or_skip(*parts: str) -> Path:
    wanted = shared_folder().joinpath(*parts)
    if not wanted.exists():
        pytest.skip(f"needs {wanted}, which is not part of the project; STEPSCOPE_SHARED names its folder")
    return wanted


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Real profiles of TensorFlow, JAX and PyTorch from real hardware; to be read only."""
    return _shared_or_skip("corpus")


@pytest.fixture(scope="session")
def bottleneck_captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captures of programs with a known bottleneck, as NAME/slow/ and NAME/fixed/ logdirs; to be read only."""
    archive = _shared_or_skip("bottlenecks", "captures.tar.xz")
    return extract_once(archive, folder_of_run(tmp_path_factory) / "bottleneck_captures")


@pytest.fixture(scope="session")
def bottleneck_cases() -> list[dict[str, Any]]:
    """What is known of these programs: `id`, `expected` class, `measured_ratio` of slow to fixed step time."""
    cases: list[dict[str, Any]] = json.loads(_shared_or_skip("bottlenecks", "manifest.json").read_text("utf-8"))[
        "cases"
    ]
    return cases


def extract_once(archive: Path, folder: Path) -> Path:
    """Extracts `archive` into `folder` unless that was done; of several processes one does it and the others wait."""
    done = folder.with_suffix(".complete")
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
            done.touch()
    return folder


@pytest.fixture(autouse=True)
def _no_callback_is_missed() -> Iterator[None]:
    """Forgets the callbacks that a test makes: at its end, a program says which of its callbacks no trainer called."""
    yield
    callbacks = sys.modules.get("stepscope.capture.callbacks.batches")
    if callbacks is not None:
        callbacks._MADE.clear()


@pytest.fixture(scope="session", autouse=True)
def _cache_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps fixtures that outlive a test away from the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEPSCOPE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def only_objects_of_this_test() -> Iterator[None]:
    """What other tests of this process have left is not searched for what holds arrays, which takes seconds."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _no_engine_is_left_over() -> Iterator[None]:
    """Forgets the engine and the memory that a command line of a test has set for its process."""
    kept = {name: os.environ.get(name) for name in ("STEPSCOPE_ENGINE", "STEPSCOPE_MEMORY")}
    yield
    for name, value in kept.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@pytest.fixture(autouse=True)
def cache_dir(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """An empty cache for each test, so that no test is answered from what another one left.

    The private profiles, which nothing changes, are read once a test run: their tests, and those of the page that shows
    them, have one cache in common.
    """
    if {"corpus", "bottleneck_captures", "page_server"} & set(request.fixturenames):
        folder = folder_of_run(tmp_path_factory) / "cache_of_private_profiles"
    else:
        folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("STEPSCOPE_CACHE_DIR", str(folder))
    return folder
