"""How the code of a program is named: with its class where the name alone says nothing."""

from __future__ import annotations

import json.encoder
import threading

import pytest

from stepscope.capture.places import LIBRARIES, called
from stepscope.capture.tracers.python_calls import code_name
from stepscope.capture.tracers.stack_samples import frame_name
from stepscope.vocabulary.python import is_of_user


class Mixer:
    def forward(self) -> None: ...

    def mix(self) -> None: ...


def test_a_layer_is_named_by_its_class() -> None:
    def call() -> None: ...

    assert called(Mixer.forward.__code__) == "Mixer.forward"
    assert called(Mixer.mix.__code__) == "mix"
    assert called(call.__code__) == "test_a_layer_is_named_by_its_class.call"


def test_files_of_libraries_are_told_by_where_they_lie() -> None:
    assert code_name(json.encoder.JSONEncoder.encode.__code__).startswith("$json/encoder.py:")
    assert code_name(threading.Thread.start.__code__).startswith("$threading.py:")
    assert code_name(Mixer.mix.__code__).startswith("$test_names_of_code.py:")


FOLDERS = [min(LIBRARIES).rstrip("/"), "/home/me/.local/lib/python3/site-packages", "/opt/dist-packages"]


@pytest.mark.parametrize("folder", FOLDERS, ids=["this", "home", "system"])
def test_a_file_is_a_librarys_wherever_libraries_are_installed(folder: str) -> None:
    code = compile("pass", f"{folder}/matplotlib/backend_bases.py", "exec")

    assert frame_name(code, 7) == f"{folder}/matplotlib/backend_bases.py(7): <module>"
    assert not is_of_user(frame_name(code, 7))
