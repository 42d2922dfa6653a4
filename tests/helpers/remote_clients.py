"""What the frameworks' own clients get from Stepscope's server.

    python remote_clients.py LOGDIR ADDRESS...

captures all addresses with TensorFlow's client, the first with the route behind XProf's Capture button, and asks
TensorFlow's client to monitor the first.  It prints one JSON line about that, and about our messages, which are made
before TensorFlow registers its own of the same names.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

from stepscope.capture.remote import messages

WINDOW_MS = 1000
OPTIONS = messages.message_class("ProfileOptions").DESCRIPTOR


def _fields(descriptor: Any) -> dict[str, int]:
    return {field.name: field.number for field in descriptor.fields}


def _event_counts(folder: Path) -> dict[str, int]:
    """Events in each profile as TensorFlow's protobuf library reads them, by the path below `folder`."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    counts = {}
    for path in sorted(folder.rglob("*.xplane.pb")):
        space = xplane_pb2.XSpace.FromString(path.read_bytes())
        # RUN is the time of day.
        counts["/".join(path.relative_to(folder).parts[:2] + path.parts[-1:])] = sum(
            len(line.events) for plane in space.planes for line in plane.lines
        )
    return counts


def _through_xprof(logdir: str, address: str) -> Any:
    from werkzeug.test import Client
    from xprof import profile_plugin
    from xprof.standalone import base_plugin, plugin_event_multiplexer

    provider = plugin_event_multiplexer.DataProvider(logdir)
    context = base_plugin.TBContext(logdir, provider, base_plugin.TBContext.Flags(False))
    route = profile_plugin.ProfilePlugin(context).get_plugin_apps()["/capture_profile"]
    answer = Client(route).get("/capture_profile", query_string={"service_addr": address, "duration": str(WINDOW_MS)})
    return json.loads(gzip.decompress(answer.get_data()))


def main(logdir: str, addresses: list[str]) -> None:
    import tensorflow as tf
    from tensorflow.core.profiler import profiler_options_pb2

    client = tf.profiler.experimental.client
    client.trace(",".join(f"grpc://{address}" for address in addresses), f"{logdir}/tensorflow", WINDOW_MS)
    report = {
        "xprof": _through_xprof(f"{logdir}/xprof", addresses[0]),
        "monitor": client.monitor(f"grpc://{addresses[0]}", WINDOW_MS, 2),
        "our_fields": _fields(OPTIONS),
        "their_fields": _fields(profiler_options_pb2.ProfileOptions.DESCRIPTOR),
    }
    report["tensorflow_events"] = _event_counts(Path(logdir, "tensorflow"))
    report["xprof_events"] = _event_counts(Path(logdir, "xprof"))
    print(json.dumps(report))


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    main(sys.argv[1], sys.argv[2:])
