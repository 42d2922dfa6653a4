"""`stepscope prove`: runs a script, changes it for some blocks of steps, and says what that did to them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from stepscope.capture.auto.autostart import print_for_user
from stepscope.capture.auto.run import ProgramToRun
from stepscope.capture.auto.settings import Settings
from stepscope.capture.files import resolve_logdir
from stepscope.capture.proving.knobs import KnobRun, try_settings
from stepscope.capture.proving.options import ProveOptions
from stepscope.cli.options import option
from stepscope.cli.run import AsCode, AsModule, Logdir, Script, ScriptArguments, Skip, refuse_option, run_program
from stepscope.cli.show import remote_address
from stepscope.cli.words import ParsedNames
from stepscope.errors import UsageError
from stepscope.proof.knobs import parse_knob
from stepscope.proof.record import write_proofs

_AT_HELP = "Delay this place: FILE:FUNCTION, FILE:LINE, a dotted name, or a cause such as input; repeatable."
_KNOBS_HELP = "Try the known settings of the frameworks, one run for each."
_KNOB_HELP = "Try these values of a setting, such as OMP_NUM_THREADS=1,2 or workers=0,4; repeatable."
_ABLATE_HELP = "Leave this out: input, logging, checkpoint, sync or a function; the results are then void."


def prove(
    given: ParsedNames,
    script: Script,
    arguments: ScriptArguments = None,
    at: Annotated[list[str] | None, option("--at", value="PLACE", help=_AT_HELP)] = None,
    ablate: Annotated[list[str] | None, option("--ablate", value="PART", help=_ABLATE_HELP)] = None,
    budget: Annotated[float, option("--budget", least=1, help="Seconds to measure at most.")] = 60.0,
    logdir: Logdir = "stepscope-logs",
    steps: Annotated[int, option("--steps", least=0, help="Steps to capture first; 0 for none.")] = Settings.steps,
    skip: Skip = Settings.skip,
    stop_after: Annotated[bool, option("--stop-after", help="End the program once the answer is known.")] = False,
    output: Annotated[
        Path | None, option("--output", value="FILE", help="Also write the proofs here, as JSON.")
    ] = None,
    knobs: Annotated[bool, option("--knobs", help=_KNOBS_HELP)] = False,
    knob: Annotated[list[str] | None, option("--knob", value="NAME=VALUES", help=_KNOB_HELP)] = None,
    timed: Annotated[str, option("--timed", hidden=True)] = "",
    as_module: AsModule = False,
    as_code: AsCode = False,
) -> None:
    """Measures what a change would give, in the running job.

    Blocks of steps are delayed in one place, or leave a part out, and are compared with plain blocks.  Without --at
    and --ablate the slowest places are delayed, which changes no values.  --ablate makes the training's results void:
    nothing is saved, and the script ends with the answer.  With --knobs or --knob the script runs several times for a
    few steps, each time with one setting.
    """
    refuse_option(script, as_code, given)
    if output is not None and remote_address(output):
        raise UsageError("the proofs are written while the job runs, on its machine", hint="choose a local --output")
    program = ProgramToRun(script, tuple(arguments or ()), as_module, as_code)
    if knobs or knob:
        if at or ablate:
            raise UsageError("--knobs changes settings, --at and --ablate the running job", hint="run them one by one")
        settings = tuple(setting for text in knob or () for setting in parse_knob(text))
        _try_settings(
            KnobRun(tuple(program.words), program.name, settings, budget, resolve_logdir(logdir), steps, skip), output
        )
        return
    options = ProveOptions(
        program.name, tuple(at or ()), tuple(ablate or ()), budget, stop_after, str(output.resolve()) if output else ""
    )
    wanted = Settings(resolve_logdir(logdir), steps, skip, prove=timed or options.to_text())
    run_program(program, wanted, quiet=True, logdir=logdir)


def _try_settings(asked: KnobRun, output: Path | None) -> None:
    proofs = try_settings(asked, print_for_user)
    if output is not None:
        write_proofs(proofs, output)
