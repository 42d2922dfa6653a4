"""Publishes the figures of a watch: for Prometheus, by OpenTelemetry, and as scalars for TensorBoard.

Each by its own client library, which is imported only if it is asked for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.capture import memory_use, report
from stepscope.capture.patches import Undo, undo_all
from stepscope.capture.tracers.ticker import Ticker
from stepscope.errors import CaptureError
from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.capture.watching.continuous import Watch

_INSTALL = 'pip install "stepscope[metrics]"'
_SCALARS_S = 10.0


MEANINGS = {
    "steps_total": "Steps that have ended.",
    "step_number": "Number of the step that runs.",
    "step_seconds": "Median of the last steps.",
    "seconds_since_step": "Time since the last step ended.",
    "watch_overhead_ratio": "Measured cost of the watch.",
    "collector_seconds_total": "Time in full garbage collections.",
    "triggers_total": "Triggers, by kind.",
    "memory_bytes": "Memory in use, by kind.",
    "observed_value": "Last value that the program has observed.",
}
"""Each figure by its name, without the prefix and with its unit, as Prometheus wants it; what ends in `_total` only
grows."""


@dataclass(frozen=True)
class Metric:
    """One figure.

    Attributes:
        name: one of `MEANINGS`.
        value: now.
        labels: name and value of one label; empty without.
    """

    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()


def read_metrics(watch: Watch) -> list[Metric]:
    """All figures of a watch, as they are now.  A figure that is unknown is left out."""
    steps, usual = watch.steps, watch.steps.usual
    found = [
        Metric("steps_total", float(steps.count)),
        Metric("step_number", float(steps.number)),
        Metric("watch_overhead_ratio", watch.budget.percent / 100),
        Metric("collector_seconds_total", watch.collector.total_ns / 1e9),
    ]
    if usual.median_ns:
        found.append(Metric("step_seconds", usual.median_ns / 1e9))
    if steps.last_end_ns:
        found.append(Metric("seconds_since_step", (time.perf_counter_ns() - steps.last_end_ns) / 1e9))
    in_use = {name: value for name, value in memory_use.memory_in_use().items() if name.endswith("_bytes")}
    return [
        *found,
        *_label("triggers_total", "trigger", watch.trigger_counts),
        *_label("memory_bytes", "kind", {name.removesuffix("_bytes"): value for name, value in in_use.items()}),
        *_label("observed_value", "name", watch.observed),
    ]


def _label(name: str, label: str, values: Mapping[str, float]) -> Iterator[Metric]:
    return (Metric(name, float(value), ((label, each),)) for each, value in sorted(values.items()))


def publish(watch: Watch) -> Undo:
    """Publishes the figures as the options of the watch say; returns what ends that.

    Raises:
        CaptureError: a library is not installed, or the port is taken.
    """
    undo: list[Undo] = []
    for is_wanted, start in (
        (watch.options.metrics_port is not None, _serve_prometheus),
        (watch.options.opentelemetry, _export_opentelemetry),
        (watch.options.tensorboard, _write_scalars),
    ):
        if is_wanted:
            with report.NeverRaise("publishing the metrics of the watch", strict=False):
                undo.append(start(watch))

    return undo_all(*undo)


def labels_of(watch: Watch) -> dict[str, str]:
    """What distinguishes this job's figures from those of others."""
    return {"run": watch.run, "host": watch.target.name}


def _serve_prometheus(watch: Watch) -> Undo:
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError as error:
        raise _missing("prometheus-client") from error
    registry = CollectorRegistry()
    registry.register(_PrometheusCollector(watch))
    port, address = watch.options.metrics_port or 0, watch.options.metrics_host
    try:
        server, thread = start_http_server(port, addr=address, registry=registry)
    except OSError as error:
        raise CaptureError(
            f"metrics cannot be served at {address}:{port}: {error.strerror or error}",
            code="metrics",
            hint="choose another metrics_port; 0 takes a free one",
        ) from error
    watch.metrics_port = server.server_port

    def end() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return end


class _PrometheusCollector:
    """Gives Prometheus' client the figures when somebody asks for them."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def describe(self) -> Iterable[Any]:
        """Nothing in advance: the kinds of triggers and of memory are not known yet."""
        return []

    def collect(self) -> Iterable[Any]:
        """The figures, one family for each name."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        common = labels_of(self._watch)
        families: dict[str, Any] = {}
        for metric in read_metrics(self._watch):
            names = [*common, *(name for name, _ in metric.labels)]
            kind = CounterMetricFamily if metric.name.endswith("_total") else GaugeMetricFamily
            full = f"stepscope_{metric.name.removesuffix('_total')}"
            family = families.setdefault(full, kind(full, MEANINGS[metric.name], labels=names))
            family.add_metric([*common.values(), *(value for _, value in metric.labels)], metric.value)
        return families.values()


def _export_opentelemetry(watch: Watch) -> Undo:
    """Sends the figures by the exporter that OpenTelemetry's own variables choose, to where they say."""
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    except ImportError as error:
        raise _missing("opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http") from error
    return export_by_reader(watch, PeriodicExportingMetricReader(OTLPMetricExporter()))


def export_by_reader(watch: Watch, reader: Any) -> Undo:
    """Gives the figures to a metric reader of OpenTelemetry's SDK; returns what ends that."""
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource

    attributes = {"service.name": "stepscope", "stepscope.run": watch.run, "host.name": watch.target.name}
    provider = MeterProvider([reader], resource=Resource.create(attributes), shutdown_on_exit=False)
    meter = provider.get_meter("stepscope")

    def observe(name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def read(options: CallbackOptions) -> Iterable[Observation]:
            return [Observation(each.value, dict(each.labels)) for each in read_metrics(watch) if each.name == name]

        return read

    for name, meaning in MEANINGS.items():
        make = meter.create_observable_counter if name.endswith("_total") else meter.create_observable_gauge
        make(f"stepscope.{name.removesuffix('_total')}", [observe(name)], description=meaning)
    shutdown: Undo = provider.shutdown
    return shutdown


def _write_scalars(watch: Watch) -> Undo:
    """Writes the figures as scalars for TensorBoard, beside the profiles.

    TensorBoard's own writer of files imports TensorFlow where that is installed; its records and messages do not.
    """
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter
    except ImportError as error:
        raise _missing("tensorboard") from error
    folder = Path(watch.logdir)
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / f"events.out.tfevents.{int(time.time())}.{watch.target.name}.{os.getpid()}.stepscope").open("wb")
    writer = RecordWriter(file)
    writer.write(Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())

    def write() -> None:
        scalars = name_scalars(read_metrics(watch))
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
        event = Event(wall_time=time.time(), step=watch.steps.number, summary=Summary(value=values))
        writer.write(event.SerializeToString())
        writer.flush()

    ticker = Ticker("scalars", _SCALARS_S, write)
    ticker.start()

    def end() -> None:
        ticker.stop()
        with report.NeverRaise("writing scalars", strict=False):
            write()
        writer.close()

    return end


def name_scalars(metrics: Iterable[Metric]) -> Mapping[str, float]:
    """The figures by TensorBoard's tags: `stepscope/memory_bytes/resident`."""
    return {"/".join(("stepscope", each.name, *(value for _, value in each.labels))): each.value for each in metrics}


def _missing(package: str) -> CaptureError:
    return CaptureError(f"{package} is not installed", code="metrics", hint=_INSTALL)
