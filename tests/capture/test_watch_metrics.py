"""The figures of a watch, read by the client libraries that they are for."""

from __future__ import annotations

import socket
import struct
import time
import urllib.request

import pytest
from waiting import await_until

import stepscope
from stepscope.capture.watching import metrics


@pytest.fixture
def watched(tmp_path):
    handles = []

    def start(**options):
        handle = stepscope.watch(tmp_path / "logs", window_every=0, window_steps=0, series=0, **options)
        handles.append(handle)
        for number in range(40):
            with stepscope.step(number):
                time.sleep(1.0 if number == 30 else 0.001)  # far above what a busy machine makes usual
        stepscope.observe(loss=0.25)
        await_until(lambda: handle.watch.marks, 60, "the slow step")
        return handle

    yield start
    for handle in handles:
        handle.stop()


def test_prometheus_reads_the_figures(watched):
    from prometheus_client.parser import text_string_to_metric_families

    handle = watched(metrics_port=0)
    with urllib.request.urlopen(f"http://127.0.0.1:{handle.watch.metrics_port}/metrics", timeout=600) as answer:
        text = answer.read().decode()

    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            extra = {key: value for key, value in sample.labels.items() if key not in ("run", "host")}
            found[(sample.name, *extra.values())] = sample.value
    assert found[("stepscope_steps_total",)] >= 39
    assert 0 < found[("stepscope_step_seconds",)] < 0.5
    assert found[("stepscope_triggers_total", "slow step")] >= 1
    assert found[("stepscope_memory_bytes", "resident")] > 1e6
    assert found[("stepscope_observed_value", "loss")] == 0.25
    assert found[("stepscope_watch_overhead_ratio",)] < 1


def test_a_port_that_is_taken_is_reported_and_the_watch_goes_on(watched):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        handle = watched(metrics_port=taken.getsockname()[1])

    assert handle.watch.metrics_port is None
    assert "metrics cannot be served" in str(stepscope.last_error())


def test_opentelemetry_reads_the_figures(watched):
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    end = metrics.export_by_reader(watched().watch, reader)
    try:
        (resource,) = reader.get_metrics_data().resource_metrics
    finally:
        end()

    points = {
        metric.name: list(metric.data.data_points) for scope in resource.scope_metrics for metric in scope.metrics
    }
    assert points["stepscope.steps"][0].value >= 39
    assert {"kind": "resident"} in [dict(point.attributes) for point in points["stepscope.memory_bytes"]]
    assert resource.resource.attributes["service.name"] == "stepscope"


def test_tensorboard_reads_the_scalars(watched, tmp_path):
    from tensorboard.compat.proto.event_pb2 import Event

    watched(tensorboard=True).stop()

    (path,) = (tmp_path / "logs").glob("events.out.tfevents.*")
    events = [Event.FromString(record) for record in read_records(path.read_bytes())]
    scalars = {value.tag: value.simple_value for value in events[-1].summary.value}
    assert events[0].file_version == "brain.Event:2"
    assert scalars["stepscope/observed_value/loss"] == 0.25
    assert scalars["stepscope/steps_total"] >= 39


def read_records(data):
    """The records of TensorBoard's file: a length of 8 bytes, its checksum, the record, its checksum.

    TensorBoard's own reader imports TensorFlow, which takes longer than all tests here.
    """
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        yield data[at + 12 : at + 12 + length]
        at += 16 + length


def test_a_library_that_is_not_installed_is_named(watched, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    watched(metrics_port=0)

    assert 'pip install "stepscope[metrics]"' in str(stepscope.last_error())
