"""Makes a job whose truth is known: `python -m bench.jobs FOLDER --kind 1f1b --world 8 --fault stages`.

There is one PyTorch trace a rank, and `truth.json`: what was planted, and what the job gains without it or with equal
work, each from a simulation of its own.  A fault is made as strong as it takes to slow the job down by `--slowdown`.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, fields
from pathlib import Path

from bench.jobs.faults import FAULTS, apply_fault, plant_fault, tell_truth
from bench.jobs.plan import KINDS, Job, build_plan
from bench.jobs.traces import write_traces


def make_job(folder: Path, job: Job) -> dict[str, object]:
    """Simulates the job, and writes its traces and `truth.json`."""
    plan = build_plan(job)
    fault = plant_fault(plan)
    spans = apply_fault(plan, fault, fault.strength if fault else 0.0)
    truth = {"job": asdict(job), "sizes": job.sizes, **tell_truth(plan, fault)}
    truth["skew_us"] = write_traces(folder, plan, plan.graph.times(spans[:, None])[:, 0])
    (folder / "truth.json").write_text(json.dumps(truth, indent=1))
    return truth


def main() -> None:
    """Makes one job."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    for each in fields(Job):
        default = each.default
        if isinstance(default, bool):
            parser.add_argument(f"--{each.name}", action=argparse.BooleanOptionalAction, default=default)
        else:
            choices = {"kind": KINDS, "fault": FAULTS}.get(each.name)
            kind = str if default is None else type(default)
            parser.add_argument(f"--{each.name.replace('_', '-')}", type=kind, default=default, choices=choices)
    options = vars(parser.parse_args())
    truth = make_job(options.pop("folder"), Job(**options))
    print(json.dumps({name: truth[name] for name in ("fault", "slowdown", "fault_slowdown", "slowdown_of_stage")}))


if __name__ == "__main__":
    main()
