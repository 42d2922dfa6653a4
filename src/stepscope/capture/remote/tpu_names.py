"""The workers of a Cloud TPU by its name, as `tpu://NAME` or `tpu://PROJECT/ZONE/NAME`.

Google's API knows the addresses of a TPU's workers.  What the name leaves out, and the right to ask, come from the
metadata server of the machine, as with Google's own clients:

    GCE_METADATA_HOST     another metadata server
    TPU_API_ENDPOINT      another address of the API
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from stepscope.errors import UsageError

SCHEME = "tpu://"
PROFILER_PORT = 8466  # of the service that every TPU machine runs
_API = "https://tpu.googleapis.com"
_METADATA_SERVER = "metadata.google.internal"
_PATIENCE_S = 5.0


def resolve(text: str) -> list[str]:
    """`host:port` of every worker of a TPU.

    Raises:
        UsageError: this is not a name of a TPU, nobody here knows it, or it is not running.
    """
    parts = text.removeprefix(SCHEME).strip("/").split("/")
    if len(parts) not in (1, 3) or not all(parts):
        raise UsageError(f"{text!r} is not a TPU name", hint=f"write {SCHEME}NAME or {SCHEME}PROJECT/ZONE/NAME")
    try:
        if len(parts) == 1:
            parts = [_ask("project/project-id"), _ask("instance/zone").rpartition("/")[2], *parts]
        project, zone, name = parts
        node = _describe(project, zone, name)
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(
            f"cannot find the TPU {parts[-1]!r}: {error}",
            hint="run this on a machine of its project, or write host:port of its workers",
        ) from error
    found = [f"{address}:{PROFILER_PORT}" for address in _worker_addresses(node)]
    if not found:
        state = node.get("state", "without workers")
        raise UsageError(f"the TPU {name!r} has no workers to ask: it is {state}", hint="start it first")
    return found


def _describe(project: str, zone: str, name: str) -> Mapping[str, Any]:
    token = json.loads(_ask("instance/service-accounts/default/token"))["access_token"]
    endpoint = os.environ.get("TPU_API_ENDPOINT", _API).rstrip("/")
    url = f"{endpoint}/v2/projects/{project}/locations/{zone}/nodes/{name}"
    found = json.loads(_get(url, {"Authorization": f"Bearer {token}"}))
    if not isinstance(found, dict):
        raise ValueError("its description is not a JSON object")
    return found


def _worker_addresses(node: Mapping[str, Any]) -> Iterator[str]:
    for worker in node.get("networkEndpoints") or ():
        address = worker.get("ipAddress") if isinstance(worker, dict) else None
        if address:
            yield str(address)


def _ask(what: str) -> str:
    server = os.environ.get("GCE_METADATA_HOST", _METADATA_SERVER)
    url = f"http://{server}/computeMetadata/v1/{what}"
    return _get(url, {"Metadata-Flavor": "Google"}).decode().strip()


def _get(url: str, headers: dict[str, str]) -> bytes:
    import urllib.error
    import urllib.request

    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url!r} is not a web address")
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_PATIENCE_S) as answer:
            return bytes(answer.read())
    except urllib.error.URLError as error:
        server = url.partition("://")[2].partition("/")[0]
        raise OSError(f"{server} does not answer as expected ({error})") from error
