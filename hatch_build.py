"""The build hooks: one makes the page and compiles the loops before they are packed, one writes the description.

A wheel, an editable installation and a source distribution all carry the built page; a wheel that is made from a source
distribution needs no Node.js, since the page in it is already that of its sources.  The loops are compiled for wheels
and editable installations, each for one platform.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent / "scripts"))

import frontend
import native


class StepscopeHook(BuildHookInterface[Any]):
    """Builds `frontend/` into `src/stepscope/web/static/` and compiles `src/stepscope/kernels/`."""

    def dependencies(self) -> list[str]:
        """A Node.js and a C compiler, where the machine has none."""
        root = Path(self.root)
        return [*frontend.needed_packages(root), *([] if self._is_source else native.needed_packages(root))]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds what changed; ends the installation with a plain message if that is impossible."""
        root = Path(self.root)
        try:
            with copy_output_to_terminal():
                if not self._is_source and not native.is_built(root):
                    native.say(f"compiling takes a minute or two, on {native.cores()} cores at once")
                frontend.build(root)
                if not self._is_source:
                    native.build(root)
            if not self._is_source:
                self._pack_modules(root, build_data)
        except frontend.FrontendError as error:
            _give_up("page", error)
        except native.NativeError as error:
            _give_up("native", error)

    @property
    def _is_source(self) -> bool:
        return bool(self.target_name == "sdist")

    def _pack_modules(self, root: Path, build_data: dict[str, Any]) -> None:
        """Names the modules, which git ignores, and the one platform that the wheel is for."""
        build_data["artifacts"] += [f"/{module.target.relative_to(root).as_posix()}" for module in native.modules(root)]
        build_data["pure_python"] = False
        tag = self.build_config.builder.get_best_matching_tag()
        if native.has_stable_abi():
            oldest = "cp{}{}".format(*native.OLDEST_ABI)
            tag = f"{oldest}-abi3-{tag.split('-', 2)[2]}"
        build_data["tag"] = tag


class _Both:
    """Takes lines for the build's own output and for the terminal."""

    def __init__(self, *files: Any) -> None:
        self._files = files

    def write(self, text: str) -> int:
        for file in self._files:
            file.write(text)
        return len(text)

    def flush(self) -> None:
        for file in self._files:
            file.flush()


@contextlib.contextmanager
def copy_output_to_terminal(terminal: str = "/dev/tty") -> Iterator[None]:
    """Has what is printed appear on the terminal as well, if there is one.

    pip keeps the output of a build, and one that takes minutes without a word looks like one that hangs.
    """
    with contextlib.ExitStack() as stack:
        if not sys.stdout.isatty():
            with contextlib.suppress(OSError):
                both = _Both(sys.stdout, stack.enter_context(Path(terminal).open("w")))
                stack.enter_context(contextlib.redirect_stdout(both))
        yield


def _give_up(part: str, error: Exception) -> None:
    print(f"\n[{part}] {error}\n", file=sys.stderr)
    raise SystemExit(1) from None


_FILES = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md"}
_LINK = re.compile(r"\[([^\]]+)\]\((?!\w+:|#)([^)]+)\)")


class DescriptionHook(MetadataHookInterface):
    """Makes the project's links and its description from the README and the one address in `pyproject.toml`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Adds `readme` and `urls`."""
        address = self.config.get("address", "")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute_links(text, address)}
        metadata["urls"] = project_urls(address)


def project_urls(address: str) -> dict[str, str]:
    """Label -> address, for the index of packages; none while the project has no address."""
    files = {label: f"{address}/blob/main/{file}" for label, file in _FILES.items()}
    return {"Source": address, "Issues": f"{address}/issues", **files} if address else {}


def absolute_links(text: str, address: str) -> str:
    """A Markdown text whose links to files of the checkout lead to the repository; only their words without one."""
    return _LINK.sub(rf"[\1]({address}/blob/main/\2)" if address else r"\1", text)
