"""Fuzz everything that reads: python tests/fuzz/run.py --minutes 60 --seed 1

Cases are made from the seed, one target after the other. A worker process looks at them: it is watched for time (of the
processor, so that a busy machine does not matter), memory and sudden death, and a new one goes on after any of these.
What is found is written as a file that ``--replay`` looks at again; when its cause is mended, the file belongs into
``tests/fuzz/corpus``, which ``tests/test_fuzz.py`` replays.
"""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

MOST_SECONDS = 60  # of the processor, for one case looked at twice
MOST_WAITED = 600
MOST_MEMORY = 3 << 29
MOST_ADDRESSES = 8 << 30
CASES_A_WORKER = 500


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", default="read,model,terms,config,command")
    parser.add_argument("--findings", type=Path, default=Path("findings"), help="folder for what is found")
    parser.add_argument("--replay", type=Path, nargs="*", help="look at these cases again")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replay:
        return replay(options.replay)
    if options.worker is not None:
        return work(options.seed, options.worker, options.targets.split(","), options.minutes)
    return watch(options)


def watch(options: argparse.Namespace) -> int:
    """Let workers look at cases until the time is over; return 1 if anything was found."""
    start, place, n_found, counts, seen = time.monotonic(), 0, 0, {}, {}
    while (left := options.minutes * 60 - (time.monotonic() - start)) > 0:
        command = [sys.executable, __file__, "--worker", str(place), "--seed", str(options.seed)]
        command += ["--targets", options.targets, "--minutes", str(left / 60)]
        with (
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as worker,
        ):
            assert worker.stdout is not None
            under_way = None
            for line in worker.stdout:
                found = json.loads(line)
                if "begins" in found:
                    under_way = found["begins"]
                    continue
                under_way, place = None, found["place"] + 1
                counts[found["target"]] = counts.get(found["target"], 0) + 1
                if found["why"]:
                    n_found += _keep(options.findings, found["case"], found["why"], seen)
            status = worker.wait()
            errors.seek(0)
            if under_way is not None:
                place = under_way["place"] + 1
                n_found += _keep(options.findings, under_way["case"], f"died ({status}): {errors.read()[-3000:]}", seen)
            elif status:
                print(f"a worker ended with {status}: {errors.read()[-3000:]}")
                return 2
    total = ", ".join(f"{name} {number:,}" for name, number in counts.items())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    minutes = (used.ru_utime + used.ru_stime) / 60
    print(f"seed {options.seed}, {minutes:.1f} minutes of processor time, cases: {total}; {n_found} findings")
    return int(n_found > 0)


def _keep(folder: Path, case: str, why: str, seen: dict[str, int]) -> int:
    """Write a finding, a few of each kind; return 1."""
    kind = why.splitlines()[-1][:60] if not why.startswith("died") else why[:40]
    seen[kind] = seen.get(kind, 0) + 1
    if seen[kind] <= 3:
        folder.mkdir(exist_ok=True, parents=True)
        name = hashlib.sha256(case.encode()).hexdigest()[:10]
        found = json.loads(case)
        (folder / f"{found['target']}-{name}.json").write_text(json.dumps(found | {"why": why}, indent=1))
        print(f"{found['target']}-{name}: {why.splitlines()[-1][:200]}", flush=True)
    return 1


def work(seed: int, place: int, targets: list[str], minutes: float) -> int:
    """Look at cases from a place on, and tell of each before and after."""
    from fuzz.targets import TARGETS, look, models

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("error")
    models()
    end = time.monotonic() + minutes * 60
    with tempfile.TemporaryDirectory() as root:
        for k in range(place, place + CASES_A_WORKER):
            if time.monotonic() > end:
                break
            target = targets[k % len(targets)]
            case = TARGETS[target][0](Random(f"{seed} {k}"))
            answers.write(json.dumps({"begins": {"place": k, "case": case.to_json()}}) + "\n")
            folder = Path(root, str(k))
            folder.mkdir()
            signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
            faulthandler.dump_traceback_later(MOST_WAITED, exit=True)
            why = ""
            try:
                look(case, folder)
            except BaseException:
                why = traceback.format_exc()
            faulthandler.cancel_dump_traceback_later()
            signal.setitimer(signal.ITIMER_PROF, 0)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
            if memory > MOST_MEMORY:
                why = why or f"took {memory >> 20} MB"
            found = {"place": k, "target": target, "why": why, "case": case.to_json() if why else ""}
            answers.write(json.dumps(found) + "\n")
            if memory > MOST_MEMORY:
                break
    return 0


def replay(paths: list[Path]) -> int:
    from fuzz.targets import Case, look

    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{path.name}: {look(Case.from_json(path.read_text()), Path(folder))[:1000]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
