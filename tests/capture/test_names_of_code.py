"""How the code of a program is named: with its class where the name alone says nothing."""

from __future__ import annotations

import json.encoder
import threading

from stepscope.capture.program_files import called
from stepscope.capture.tracers.python_calls import code_name


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
