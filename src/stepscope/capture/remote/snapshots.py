"""The client of continuous profiling: one worker records until it is asked to stop."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from stepscope.capture import files
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.remote import addresses
from stepscope.capture.remote.access import choose_token
from stepscope.capture.remote.outcome import Failure, LogDir, Reason
from stepscope.capture.report import report
from stepscope.capture.tracers.base import Artifact
from stepscope.errors import CaptureError

if TYPE_CHECKING:
    from stepscope.capture.remote.service import Method

_ANSWER_SECONDS = 60.0  # a snapshot has to be collected and sent


class ContinuousProfiling:
    """Lets a worker record all the time, and fetches the record when something interesting has happened.

    Every snapshot is a separate profile of what happened since the previous one:

        with ContinuousProfiling("worker-0:6009", "logs") as profiling:
            while training:
                if got_slow():
                    print(profiling.snapshot())

    Stepscope's server and those of recent TensorFlow and JAX support this.  The record is in the worker's memory, so
    take a snapshot now and then.

    Args:
        service_addr: one worker, `host:port`.
        logdir: a local folder; made if it does not exist.
        options: as for `stepscope.start`.
        token: as for `client.trace`.

    Raises:
        UsageError: the address or the token is invalid.
    """

    def __init__(self, service_addr: str, logdir: LogDir, options: object = None, token: str | None = None) -> None:
        self._address = addresses.parse_one(service_addr)
        self._logdir = logdir
        self._options = ProfilerOptions.from_any(options).clamp()
        self._token = choose_token(token)
        self._channel: Any = None

    def start(self) -> None:
        """The worker starts recording.

        Raises:
            CaptureError: it cannot be reached, is already recording, or does not support this.
        """
        from stepscope.capture.remote import messages, reach, service

        self._channel = service.open_channel(str(self._address), self._token)
        try:
            failure = reach.check(self._address, self._channel)
            if failure is not None:
                raise failure.to_error(self._address)
            self._call(service.START_CONTINUOUS, opts=messages.profile_options(self._options), emit_xspace=True)
        except BaseException:
            self._close()
            raise

    def snapshot(self) -> Path:
        """Fetches what was recorded since the last snapshot; returns the profile.

        Raises:
            CaptureError: the worker does not record or cannot be reached, or the profile cannot be written.
        """
        from stepscope.capture.remote import service

        if self._channel is None:
            raise CaptureError("no continuous profiling is running", code="not-running", hint="call start() first")
        space = bytes(self._call(service.GET_SNAPSHOT).xspace)
        if not space:
            empty = Failure(Reason.EMPTY, "the snapshot is empty; ask again while the job trains")
            raise empty.to_error(self._address)
        folder = files.make_run_folder(self._logdir)
        try:
            return files.store((Artifact("xplane.pb", space),), folder, files.safe_name(str(self._address)))
        finally:
            files.drop_if_empty(folder)

    def stop(self) -> None:
        """The worker ends its recording and discards what was not fetched.  May be called more than once.  If the
        worker is gone, that is logged."""
        from stepscope.capture.remote import service

        if self._channel is None:
            return
        try:
            self._call(service.STOP_CONTINUOUS)
        except CaptureError as error:
            report(error, "ending continuous profiling")
        finally:
            self._close()

    def __enter__(self) -> ContinuousProfiling:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.stop()

    def _call(self, method: Method, **fields: Any) -> Any:
        from stepscope.capture.remote import messages, reach

        unsupported = "this server does not support continuous profiling; capture a profile instead"
        request = messages.new(method.request, **fields)
        return reach.call(self._address, self._channel, method, request, _ANSWER_SECONDS, unsupported)

    def _close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
