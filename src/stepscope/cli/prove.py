"""`stepscope prove`: runs a script, changes it for some blocks of steps, and says what that did to them."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Annotated

import typer

from stepscope.capture.auto.run import Program
from stepscope.capture.auto.settings import Settings
from stepscope.capture.files import resolve_logdir
from stepscope.capture.proving.options import ProveOptions
from stepscope.cli import screen
from stepscope.cli.run import AsCode, AsModule, Logdir, Script, ScriptArguments, Skip, refuse_option, run_program
from stepscope.cli.show import remote_address
from stepscope.errors import UsageError

_AT_HELP = "Delay this place: FILE:FUNCTION, FILE:LINE, a dotted name, input, sync, transfer, ... Repeatable."
_ABLATE_HELP = "Leave this out: input, logging, checkpoint, sync or a function. Training results are then void."


SETTINGS = {
    "context_settings": {"ignore_unknown_options": True, "allow_interspersed_args": False}
}  # options of ours end before the script's name


def prove(
    context: typer.Context,
    script: Script,
    arguments: ScriptArguments = None,
    at: Annotated[list[str] | None, typer.Option("--at", metavar="PLACE", help=_AT_HELP)] = None,
    ablate: Annotated[list[str] | None, typer.Option("--ablate", metavar="PART", help=_ABLATE_HELP)] = None,
    budget: Annotated[float, typer.Option("--budget", min=1, help="Seconds to measure at most.")] = 60.0,
    logdir: Logdir = "stepscope-logs",
    steps: Annotated[int, typer.Option("--steps", min=0, help="Steps to capture first; 0 for none.")] = Settings.steps,
    skip: Skip = Settings.skip,
    stop_after: Annotated[bool, typer.Option("--stop-after", help="End the program with the answer.")] = False,
    output: Annotated[Path | None, typer.Option("--output", help="Write the proofs to this file as JSON, too.")] = None,
    as_module: AsModule = False,
    as_code: AsCode = False,
) -> None:
    """Measures what a change would give, in the running job: blocks of its steps are delayed in a place, or do without
    a part, in pairs with plain ones.

    Without --at and --ablate the first places of the account are delayed, which changes no values.  After --ablate the
    results of the training are void: nothing is saved where the script would save, and the script ends with the answer.
    """
    refuse_option(script, as_code, context)
    if output is not None and remote_address(output):
        raise UsageError("the proofs are written while the job runs, on its machine", hint="choose a local --output")
    gc.enable()  # see `stepscope.cli.main.main`; the script must not notice
    screen.restore_streams()
    program = Program(script, arguments or (), as_module, as_code)
    options = ProveOptions(
        program.name, tuple(at or ()), tuple(ablate or ()), budget, stop_after, str(output.resolve()) if output else ""
    )
    settings = Settings(resolve_logdir(logdir), steps, skip, prove=options.to_text())
    run_program(program, settings, quiet=True, logdir=logdir)
