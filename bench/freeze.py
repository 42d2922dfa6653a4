"""`python -m bench.freeze`: keeps what every tool says about recordings, and shows what a change of the code changes.

    python -m bench.freeze keep FILE FOLDER...      a FOLDER holds recordings, at any depth
    python -m bench.freeze diff BEFORE AFTER        what differs, and the score of both

Kept are the JSON of every tool, the verdict, the advice with its gains, and what removing the class of the first advice
gives by `whatif`. Where a folder has a `manifest.json` beside it (`cases` with `id`, `expected`, `measured_ratio`) or a
`result.json` of `bench.gains`, the class and the gain that are known are kept, too.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import stepscope
from bench.bottlenecks.series import list_programs
from bench.gains import RESULT, measure_gain, pair_blocks
from stepscope.analysis.registry import TOOLS
from stepscope.errors import StepscopeError

CLOSE = 0.2  # a predicted gain within this share of the real one is a good prediction
SLOW, FIXED = "slow", "fixed"
_SHOWN = 12  # differing tools of a recording that are named

Frozen = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Keeps or compares; returns 1 if two freezes differ."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.freeze", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    keep = commands.add_parser("keep", help="write a freeze")
    keep.add_argument("file", type=Path)
    keep.add_argument("folders", type=Path, nargs="+")
    keep.add_argument("--manifest", type=Path, help="what is known about the recordings of a folder")
    keep.add_argument("--brief", action="store_true", help="only verdict, advice and what-if, without the other tools")
    diff = commands.add_parser("diff", help="compare two freezes")
    diff.add_argument("before", type=Path)
    diff.add_argument("after", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "keep":
        options.file.write_text(json.dumps(freeze(options.folders, options.manifest, options.brief)), encoding="utf-8")
        return 0
    before, after = (json.loads(path.read_text("utf-8")) for path in (options.before, options.after))
    lines = list(describe_changes(before, after))
    print("\n".join([*lines, "", *describe_scores(before, after)]))
    return int(bool(lines))


def freeze(folders: Sequence[Path], manifest: Path | None = None, brief: bool = False) -> dict[str, Frozen]:
    """What is said about each recording in some folders, by its name."""
    known = _read_manifest(manifest)
    places = [(folder.parent, place) for folder in folders for place in list_recordings(folder)]
    found = {str(place.relative_to(parent)): place for parent, place in places}
    return {name: {**_freeze_one(place, brief), **(_known_of(place, known) or {})} for name, place in found.items()}


def list_recordings(folder: Path) -> Iterator[Path]:
    """The outermost folders below one that are one recording each: no session of them lies in a folder of its own."""
    is_recording = any(folder.glob("*.json*")) or (folder / "plugins").is_dir()
    if is_recording and not (folder / SLOW).is_dir():
        yield folder
        return
    for child in sorted(folder.iterdir()):
        if child.is_dir():
            yield from list_recordings(child)


def _freeze_one(place: Path, brief: bool) -> Frozen:
    try:
        profile = stepscope.load(place)
    except StepscopeError as error:
        return {"error": str(error)}
    names = ["overview", "advice"] if brief else [tool.name for tool in TOOLS]
    tools = {name: _ask(lambda name=name: profile.report(name).to_dict()) for name in names}  # type: ignore[misc]
    first = next(iter(tools["advice"].get("advice", [])), {})
    kind = first.get("class")
    said = None if kind in (None, "none") else _ask(lambda: profile.whatif(remove=[kind]).to_dict())
    return {"tools": tools, "whatif": said}


def _ask(tool: Any) -> Any:
    try:
        return tool()
    except StepscopeError as error:
        return {"error": str(error)}


def _read_manifest(manifest: Path | None) -> dict[str, Any]:
    cases = json.loads(manifest.read_text("utf-8"))["cases"] if manifest else []
    return {case["id"]: case for case in cases}


def _known_of(place: Path, manifest: Mapping[str, Any]) -> Frozen | None:
    """The class and the gain that are known of a slow variant, and the class `none` of a fixed one."""
    if place.name not in (SLOW, FIXED):
        return None
    case = manifest.get(place.parent.name)
    if case:
        classes, real = [case["expected"], *case.get("also_acceptable", ())], case.get("measured_ratio")
    elif (place.parent / RESULT).is_file():
        programs = {program.name: program for program in list_programs()}
        program = programs[place.parent.name]
        blocks = json.loads((place.parent / RESULT).read_text("utf-8"))["blocks"]
        classes = [program.expected, *program.also]
        real = measure_gain(*pair_blocks(blocks, "step_ms")).real
    else:
        return None
    if place.name == FIXED or classes[0] == "none":
        return {"classes": ["none"], "real": None}
    return {"classes": classes, "real": real}


def describe_changes(before: Mapping[str, Frozen], after: Mapping[str, Frozen]) -> Iterator[str]:
    """What differs between two freezes, a line each."""
    for name in sorted({*before, *after}):
        if name not in before or name not in after:
            yield f"{name}: only {'before' if name in before else 'after'}"
            continue
        one, other = before[name], after[name]
        yield from (f"{name}: {line}" for line in _describe_answers(one, other))
        tools = [key for key in one.get("tools", {}) if one["tools"][key] != other.get("tools", {}).get(key)]
        if tools:
            more = f" and {len(tools) - _SHOWN} more" if len(tools) > _SHOWN else ""
            yield f"{name}: other JSON of {', '.join(tools[:_SHOWN])}{more}"


def _describe_answers(one: Frozen, other: Frozen) -> Iterator[str]:
    for what, read in (("verdict", _verdict), ("first advice", _first_class)):
        if read(one) != read(other):
            yield f"{what} was {read(one)}, is {read(other)}{_known_text(other)}"
    for what, read_gain in (("gain", predicted), ("what-if", _whatif)):
        if read_gain(one) != read_gain(other):
            real = f" (real {other['real']:.2f})" if other.get("real") else ""
            yield f"{what} was {read_gain(one)}, is {read_gain(other)}{real}"


def _known_text(frozen: Frozen) -> str:
    return f" (known: {' or '.join(frozen['classes'])})" if frozen.get("classes") else ""


def _advice(frozen: Frozen) -> Mapping[str, Any]:
    items = frozen.get("tools", {}).get("advice", {}).get("advice") or [{}]
    first: Mapping[str, Any] = items[0]
    return first


def _first_class(frozen: Frozen) -> str:
    return str(_advice(frozen).get("class", "no advice"))


def _verdict(frozen: Frozen) -> str:
    return str(frozen.get("tools", {}).get("overview", {}).get("verdict"))


def predicted(frozen: Frozen) -> float | None:
    """The gain that the first advice predicts."""
    gain: float | None = _advice(frozen).get("predicted_speedup")
    return gain


def _whatif(frozen: Frozen) -> float | None:
    return (frozen.get("whatif") or {}).get("predicted_speedup")


def describe_scores(before: Mapping[str, Frozen], after: Mapping[str, Frozen]) -> Iterator[str]:
    """The score of two freezes, a line for each figure."""
    for title, one, other in zip(_TITLES, _scores(before), _scores(after), strict=True):
        yield f"{title}: {one} before, {other} after"


_TITLES = (
    "first advice right", "fixed variants `none`", f"gains within {CLOSE:.0%}", "gains stated", "gains in the range",
    "sum of logarithmic errors of stated gains", "width of the range in the median", "what-if equals advice",
)  # fmt: skip


def _scores(frozen: Mapping[str, Frozen]) -> list[str]:
    known = [each for each in frozen.values() if each.get("classes")]
    slow = [each for each in known if each["classes"] != ["none"]]
    healthy = [each for each in known if each["classes"] == ["none"]]
    gains = [(each, gain, each["real"]) for each in slow if (gain := predicted(each)) and each.get("real")]
    gains = [(each, gain, real) for each, gain, real in gains if _first_class(each) in each["classes"]]
    errors = [abs(math.log(gain / real)) for _, gain, real in gains]
    ranges = [(_range(each), real) for each, _, real in gains]
    widths = sorted(most / least for (least, most), _ in ranges if least and most)
    pairs = [(predicted(each), _whatif(each)) for each in frozen.values() if predicted(each)]
    return [
        f"{sum(_first_class(each) in each['classes'] for each in slow)} of {len(slow)}",
        f"{sum(_first_class(each) == 'none' for each in healthy)} of {len(healthy)}",
        f"{sum(abs(gain / real - 1) <= CLOSE for _, gain, real in gains)} of {len(gains)}",
        f"{len(gains)} of {sum(bool(each.get('real')) for each in slow)}",
        f"{sum(least <= real <= most for (least, most), real in ranges)} of {len(ranges)}",
        f"{sum(errors):.2f} ({sum(errors) / max(len(errors), 1):.3f} each)",
        f"{widths[len(widths) // 2]:.2f}" if widths else "none",
        f"{sum(one == other for one, other in pairs)} of {len(pairs)}",
    ]


def _range(frozen: Frozen) -> tuple[float, float]:
    item = _advice(frozen)
    least, most = item.get("predicted_speedup_least"), item.get("predicted_speedup_most")
    return least or 0.0, most or (math.inf if least else 0.0)


if __name__ == "__main__":
    sys.exit(main())
