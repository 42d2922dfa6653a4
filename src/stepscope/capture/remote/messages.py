"""The messages of the profiler service, made from the table below.

They have their own descriptor pool.  TensorFlow, TensorBoard and XProf register messages of the same names in
protobuf's default pool, from generated code that depends on the release of protobuf; a second registration there makes
the later import fail.  A private pool conflicts with none of them, and a table does not depend on a release.

An XSpace is declared as bytes, which has the same encoding: a profile of a gigabyte is forwarded, never parsed.
Enumerations are declared as int32 for the same reason.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from stepscope.capture.options import ProfilerOptions

PACKAGE = "tensorflow"
LEVELS = ("host_tracer_level", "device_tracer_level", "python_tracer_level")

# Name, number, type.  A type is a scalar of protobuf or a message of this table, possibly after `repeated` or `map`;
# the keys of all maps are strings.
MESSAGES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "TraceOptions": (("host_traceme_filter_mask", 1, "uint64"),),
    "AdvancedConfigValue": (("string_value", 1, "string"),),
    "ProfileOptions": (
        ("include_dataset_ops", 1, "bool"),
        ("host_tracer_level", 2, "uint32"),
        ("device_tracer_level", 3, "uint32"),
        ("python_tracer_level", 4, "uint32"),
        ("version", 5, "uint32"),
        ("device_type", 6, "int32"),
        ("enable_hlo_proto", 7, "bool"),
        ("start_timestamp_ns", 8, "uint64"),
        ("duration_ms", 9, "uint64"),
        ("repository_path", 10, "string"),
        ("trace_options", 11, "TraceOptions"),
        ("advanced_configuration", 12, "map AdvancedConfigValue"),
        ("raise_error_on_start_failure", 13, "bool"),
        ("session_id", 14, "string"),
        ("override_hostname", 15, "string"),
    ),
    "ToolRequestOptions": (("output_formats", 2, "string"), ("save_to_repo", 3, "bool")),
    "ProfileRequest": (
        ("duration_ms", 1, "uint64"),
        ("max_events", 2, "uint64"),
        ("tools", 3, "repeated string"),
        ("opts", 4, "ProfileOptions"),
        ("repository_root", 5, "string"),
        ("session_id", 6, "string"),
        ("host_name", 7, "string"),
        ("tool_options", 8, "map ToolRequestOptions"),
        ("emit_xspace", 9, "bool"),
    ),
    "ProfileToolData": (("name", 1, "string"), ("data", 2, "bytes")),
    "ProfileResponse": (
        ("tool_data", 6, "repeated ProfileToolData"),
        ("empty_trace", 7, "bool"),
        ("xspace", 8, "bytes"),
    ),
    "TerminateRequest": (("session_id", 1, "string"),),
    "TerminateResponse": (),
    "MonitorRequest": (("duration_ms", 1, "uint64"), ("monitoring_level", 2, "int32"), ("timestamp", 3, "bool")),
    "ProfilerServiceMonitorResult": (
        ("response_type", 1, "int32"),
        ("device_idle_time_percent", 2, "double"),
        ("matrix_unit_utilization_percent", 3, "double"),
        ("step_time_ms_avg", 4, "double"),
        ("step_time_ms_min", 5, "double"),
        ("step_time_ms_max", 6, "double"),
        ("infeed_percent_avg", 7, "double"),
        ("infeed_percent_min", 8, "double"),
        ("infeed_percent_max", 9, "double"),
    ),
    "MonitorResponse": (("data", 1, "string"), ("monitor_result", 10, "ProfilerServiceMonitorResult")),
    "ContinuousProfilingResponse": (),
    "StopContinuousProfilingRequest": (),
    "StopContinuousProfilingResponse": (),
    "GetSnapshotRequest": (("snapshot_session_id", 1, "string"),),
}

_FIELD = descriptor_pb2.FieldDescriptorProto


def new(name: str, **fields: Any) -> Any:
    """A message of the table with some fields set."""
    return message_class(name)(**fields)


def profile_options(options: ProfilerOptions, **fields: Any) -> Any:
    """What to record, as a message with some more fields set."""
    levels = {level: getattr(options, level) for level in LEVELS}
    return new("ProfileOptions", version=1, include_dataset_ops=True, **levels, **fields)


def message_class(name: str) -> Any:
    """The class of a message of the table."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{PACKAGE}.{name}"))


@cache
def _pool() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="stepscope/profiler_service.proto", package=PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields:
            _add_field(message, *field)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool


def _add_field(message: Any, name: str, number: int, declared: str) -> None:
    label, _, kind = declared.rpartition(" ")
    if label == "map":
        kind = _add_entry(message, name, kind)
    field = message.field.add(name=name, number=number, label=_FIELD.LABEL_REPEATED if label else _FIELD.LABEL_OPTIONAL)
    _set_type(field, kind)


def _add_entry(message: Any, name: str, kind: str) -> str:
    """Declares the entries of a map, which are messages nested in the one with the map; returns their type."""
    entry = message.nested_type.add(name="".join(part.capitalize() for part in name.split("_")) + "Entry")
    entry.options.map_entry = True
    _add_field(entry, "key", 1, "string")
    _add_field(entry, "value", 2, kind)
    return f"{message.name}.{entry.name}"


def _set_type(field: Any, kind: str) -> None:
    scalar = getattr(_FIELD, f"TYPE_{kind.upper()}", None)
    if scalar is None:
        field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
    else:
        field.type = scalar
