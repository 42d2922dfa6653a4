"""Adds the token to the calls of a client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc

from stepscope.capture.remote.access import metadata_of


class AddToken(grpc.UnaryUnaryClientInterceptor):  # type: ignore[misc]
    """Puts the token into the metadata of every call."""

    def __init__(self, token: str) -> None:
        self._pair = metadata_of(token)

    def intercept_unary_unary(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        """Makes the call with the token."""
        return continuation(_Details(details, (*(details.metadata or ()), self._pair)), request)


class _Details(grpc.ClientCallDetails):  # type: ignore[misc]
    """The details of a call, with other metadata."""

    def __init__(self, details: Any, metadata: tuple[tuple[str, str], ...]) -> None:
        self.method, self.timeout, self.metadata = details.method, details.timeout, metadata
        self.credentials, self.wait_for_ready = details.credentials, details.wait_for_ready
        self.compression = details.compression
