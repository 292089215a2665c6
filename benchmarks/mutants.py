"""Mutation testing: random small changes of a package, each against the tests that reach its line.

    python benchmarks/mutants.py --module certificate --count 60 --seed 19
    python benchmarks/mutants.py --module certificate --budget 60 --after log   # survivors may take longer
    python benchmarks/mutants.py --module certificate --control                 # nothing is changed: all must survive

A mutant is *killed* if a test of its module fails, or takes far longer than it did. One that no test reaches survives.
Text is not mutated: docstrings, annotations, messages of errors. One run of the tests with coverage, slow ones
included, tells which of them reach which line; then they are collected once, and each mutant is a forked child in which
the code of one function is exchanged, or for what stands at the top of a module, one that imports the package anew. The
tree is copied beforehand: nothing is written where it lies.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import hashlib
import importlib.abc
import importlib.util
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # children of a process with threads may wait for ever
os.environ["CI"] = "1"  # Hypothesis draws the same examples every time

import coverage
import hypothesis  # noqa: F401 - what children need is imported once
import numpy  # noqa: F401
import pytest
import scipy.optimize
import scipy.sparse  # noqa: F401

ROOT = Path(__file__).resolve().parent.parent

TESTS = {
    "agreement": ("agreement", "rows"),
    "certificate": (
        "certificate",
        "certificate_bounds",
        "sharing",
        "wide",
        "support",
        "words",
    ),
    "recover": (
        "recover",
        "shorten",
        "judge",
        "rounded",
        "relu_noisy",
        "wide",
    ),
    "isotropy": ("moments", "decomposition", "isotropy"),
    "l1": ("l1"),
}
"""The files that test a package."""

SLOWER, SPARE = 3, 6
"""A mutant is killed if its tests take this many times their own time, and so many seconds more (of the processor)."""

QUIETLY = ["-q", "-s", "--no-header", "--no-summary", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist"]

KILLED, SURVIVED, NOT_REACHED, TOP = "killed", "survived", "not reached", "top"

NOTHING = "nothing changed"


@dataclass(frozen=True)
class Mutant:
    """A change of one node of a module.

    Attributes
    ----------
    path : str
        The module, relative to the root.
    place : int
        Which node of the tree, in the order of `ast.walk`.
    line : int
    what : str
        The change, in words.
    """

    path: str
    place: int
    line: int
    what: str


# --- changes ---

COMPARED = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
NAMED = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "any": "all",
    "all": "any",
    "argmin": "argmax",
    "argmax": "argmin",
    "floor": "ceil",
    "ceil": "floor",
}


def changes(node: ast.AST) -> Iterator[str]:
    """Yield the names of what can be done to a node."""
    if isinstance(node, ast.Compare):
        yield from (f"compare {other.__name__}" for other in COMPARED[type(node.ops[0])])
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in COMPUTED:
        yield f"arithmetic {COMPUTED[type(node.op)].__name__}"
    if isinstance(node, ast.BoolOp):
        yield "and/or"
    elif isinstance(node, ast.UnaryOp):
        yield "operator removed"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "constant flipped"
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield from ("constant + 1", *(("constant * 2", "constant 0") if node.value else ()))
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        yield "condition negated"
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield "returns None"
    elif isinstance(node, ast.Expr | ast.AugAssign | ast.Break | ast.Continue | ast.Raise):
        yield "deleted"
    elif isinstance(node, ast.Name) and node.id in NAMED:
        yield f"{node.id} -> {NAMED[node.id]}"
    elif isinstance(node, ast.Attribute) and node.attr in NAMED:
        yield f"{node.attr} -> {NAMED[node.attr]}"


def change(node: Any, what: str) -> Any:
    """Return the node, changed."""
    kind, _, to = what.partition(" ")
    if what == NOTHING:
        return node
    if kind == "compare":
        node.ops[0] = getattr(ast, to)()
    elif kind == "arithmetic":
        node.op = getattr(ast, to)()
    elif what == "and/or":
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif what == "operator removed":
        return node.operand
    elif what == "constant flipped":
        node.value = not node.value
    elif kind == "constant":
        node.value = {"+ 1": node.value + 1, "* 2": node.value * 2, "0": 0}[to]
    elif what == "condition negated":
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif what == "returns None":
        node.value = ast.Constant(None)
    elif what == "deleted":
        return ast.copy_location(ast.Pass(), node)
    elif isinstance(node, ast.Name):
        node.id = NAMED[node.id]
    else:
        node.attr = NAMED[node.attr]
    return node


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def candidates(path: Path) -> list[Mutant]:
    """Return all mutants of a module."""
    tree = ast.parse(path.read_text())
    passed: set[int] = set()
    for node in ast.walk(tree):
        skipped: list[ast.AST | None] = []
        if _is_text(node) or isinstance(node, ast.JoinedStr):
            skipped = [node]
        elif isinstance(node, ast.Raise):
            skipped = [node.exc]
        elif isinstance(node, ast.arg | ast.AnnAssign):
            skipped = [node.annotation]
        elif isinstance(node, ast.FunctionDef):
            skipped = [node.returns]
        elif isinstance(node, ast.ClassDef):
            skipped = [*node.decorator_list, *node.bases]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            alias = isinstance(node.value, ast.Subscript | ast.BinOp) and node.targets[0].id.lstrip("_")[:2].istitle()
            skipped = [node.value] if node.targets[0].id == "__all__" or alias else []
        passed.update(id(part) for root in skipped if root is not None for part in ast.walk(root))
    found = []
    for place, node in enumerate(ast.walk(tree)):
        if id(node) not in passed:
            line = getattr(node, "lineno", 0)
            found += [Mutant(str(path), place, line, what) for what in changes(node)]
    return found


class _Exchange(ast.NodeTransformer):
    def __init__(self, target: ast.AST, what: str) -> None:
        self.target, self.what = target, what

    def visit(self, node: ast.AST) -> Any:
        return change(node, self.what) if node is self.target else self.generic_visit(node)


def mutated(mutant: Mutant) -> tuple[ast.Module, ast.stmt, ast.stmt | None]:
    """Return the changed tree, the statement that the change is in, and the outermost function, if it is in a body."""
    tree = ast.parse(Path(mutant.path).read_text())
    target = [*ast.walk(tree)][mutant.place]
    around = [*_around(tree, target)]
    functions = [i for i, node in enumerate(around[:-1]) if isinstance(node, ast.FunctionDef)]
    outer = next((around[i] for i in functions if around[i + 1] in around[i].body), None)  # type: ignore[attr-defined]
    statement = copy.deepcopy(around[-1])
    return ast.fix_missing_locations(_Exchange(target, mutant.what).visit(tree)), statement, outer


def _around(tree: ast.AST, target: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements that a node is in, the outermost first."""
    for node in ast.iter_child_nodes(tree):
        if any(part is target for part in ast.walk(node)):
            if isinstance(node, ast.stmt):
                yield node
            yield from _around(node, target)


# --- tests ---


class Runner:
    """A plugin of pytest: its tests are collected once, and children of this process run some of them.

    Parameters
    ----------
    module : str
    mutants : list of Mutant
    budget : float
        Seconds of tests, the fastest first, that a mutant is given.
    """

    def __init__(self, module: str, mutants: list[Mutant], budget: float) -> None:
        self.module, self.mutants, self.budget = module, mutants, budget
        self.outcomes: list[str] = []
        self.tests: list[list[str]] = []
        self.times: dict[str, float] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Measure the tests, then try the mutants; those of the top of a module are left for later."""
        items = {item.nodeid: item for item in session.items}
        reach, self.times = self._measured(session, items)
        functions = defaultdict(list)
        for found in gc.get_objects():
            if isinstance(found, FunctionType):
                functions[found.__code__.co_filename, found.__code__.co_qualname].append(found)
        for mutant in self.mutants:
            tree, statement, outer = mutated(mutant)
            tests = self._tests(mutant, statement, outer, reach)
            file = str(Path(mutant.path).resolve())
            swaps = [
                (function, code)
                for code in _codes(compile(tree, file, "exec"))
                for function in functions.get((file, code.co_qualname), ())
                if function.__code__ != code and function.__code__.co_firstlineno == code.co_firstlineno
            ]
            outcome = NOT_REACHED if not tests else TOP
            if tests and outer is not None and (swaps or mutant.what == NOTHING):
                outcome = in_child(
                    partial(_swap_and_run, session, [items[name] for name in tests], swaps), self.limit(tests)
                )
            self.tests.append(tests)
            self.outcomes.append(outcome)
            if outcome != TOP:
                print(describe(mutant, outcome), flush=True)
        return True

    def limit(self, tests: list[str]) -> int:
        """Return the seconds after which a mutant is no longer waited for."""
        return round(SLOWER * sum(self.times[name] for name in tests) + SPARE)

    def _measured(
        self, session: pytest.Session, items: dict[str, pytest.Item]
    ) -> tuple[dict[str, dict[str, list[str]]], dict[str, float]]:
        """Return the tests that reach each line of the package, and the times of all tests; kept for the next run."""
        digest = hashlib.sha256("".join(items).encode())
        for path in sorted([*Path("src").rglob("*.py"), *Path("tests").glob("*.py")]):
            digest.update(path.read_bytes())
        kept = Path(tempfile.gettempdir()) / f"massart-mutants-{self.module}-{digest.hexdigest()[:16]}.json"
        if not kept.exists():
            in_child(partial(_measure, session, [*items.values()], self.module, kept))
        found = json.loads(kept.read_text())
        print(f"{self.module}: {len(items)} tests, {sum(found['times'].values()):.0f} s with coverage", flush=True)
        for name in found["failed"]:
            print("fails without a mutant, and is left out:", name)
        return found["reach"], found["times"]

    def _tests(
        self, mutant: Mutant, statement: ast.stmt, outer: ast.AST | None, reach: dict[str, dict[str, list[str]]]
    ) -> list[str]:
        """Return the tests that reach a mutant, the fastest first, as many as the budget allows."""
        lines = reach.get(mutant.path, {})
        body = getattr(statement, "body", None)
        end = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
        names = {test for line in range(statement.lineno, end + 1) for test in lines.get(str(line), ())}
        if outer is None:  # of a constant those that reach a line with its name, of a class all
            names = {test for tests in lines.values() for test in tests}
            if isinstance(statement, ast.Assign):
                known = [part.id for part in ast.walk(statement.targets[0]) if isinstance(part, ast.Name)]
                names = set()
                for file, others in reach.items():
                    for number, line in enumerate(Path(file).read_text().splitlines(), 1):
                        if any(name in line for name in known):
                            names.update(others.get(str(number), ()))
        chosen, spent = list[str](), 0.0
        for name in sorted(names, key=lambda name: (self.times[name], name)):
            spent += self.times[name]
            if chosen and spent > self.budget:
                break
            chosen.append(name)
        return chosen


def _measure(session: pytest.Session, items: list[pytest.Item], module: str, target: Path) -> int:
    recorder = coverage.Coverage(data_file=None, config_file=False, include=[f"*/src/massart/{module}/*"])
    times, failed = {}, []
    recorder.start()
    for item, following in zip(items, [*items[1:], None], strict=True):
        recorder.switch_context(item.nodeid)
        before, start = session.testsfailed, time.process_time()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        times[item.nodeid] = time.process_time() - start
        failed += [item.nodeid] if session.testsfailed > before else []
    recorder.stop()
    data = recorder.get_data()
    reach = {
        str(Path(file).relative_to(Path.cwd())): {
            line: [name for name in names if name and name not in failed]
            for line, names in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }
    target.write_text(json.dumps({"reach": reach, "times": times, "failed": failed}))
    return 0


def _codes(code: CodeType) -> Iterator[CodeType]:
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield part
            yield from _codes(part)


def _swap_and_run(session: pytest.Session, items: list[pytest.Item], swaps: list[tuple[FunctionType, CodeType]]) -> int:
    for function, code in swaps:
        function.__code__ = code
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return 1
    return 0


def in_child(work: Callable[[], int], seconds: int | None = None, *, silent: bool = True) -> str:
    """Return what became of a mutant that a child of this process has: it is killed if that ends with 1 or too late."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        status = 1
        try:
            if seconds is not None:
                resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            if silent:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, 1)
                os.dup2(nowhere, 2)
            status = work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    status = os.waitpid(child, 0)[1]
    return SURVIVED if status == 0 else KILLED


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from its changed tree."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self.name, self.path, self.tree = name, path, tree

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """Return the changed module."""
        if fullname != self.name:
            return None
        package = [str(self.path.parent)] if self.path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=self, submodule_search_locations=package
        )

    def exec_module(self, module: Any) -> None:
        """Run the changed module."""
        exec(compile(self.tree, str(self.path), "exec"), module.__dict__)


def _import_and_run(mutant: Mutant, tests: list[str]) -> int:
    path = Path(mutant.path).resolve()
    parts = path.relative_to(Path("src").resolve()).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    sys.meta_path.insert(0, _Finder(name, path, mutated(mutant)[0]))
    return int(pytest.main([*QUIETLY, "-x", *tests])) and 1


def describe(mutant: Mutant, outcome: str) -> str:
    """Say what became of a mutant, in a line."""
    line = Path(mutant.path).read_text().splitlines()[mutant.line - 1].strip()
    return f"{outcome:11} {mutant.path[len('src/massart/') :]}:{mutant.line}: {mutant.what}: {line}"


def main() -> int:
    """Try random mutants of a package, and print how many are killed, and the others."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--module", choices=TESTS, required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of tests for a mutant, the fastest first")
    parser.add_argument("--fast", action="store_true", help="without tests that are marked as slow")
    parser.add_argument("--after", type=Path, help="what an earlier run printed: those it killed are not tried again")
    parser.add_argument("--control", action="store_true", help="change nothing: all must survive")
    options = parser.parse_args()
    killed = options.after.read_text().splitlines() if options.after else []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for part in ("src", "tests", "benchmarks", "pyproject.toml"):
            source = ROOT / part
            shutil.copytree(source, Path(folder) / part) if source.is_dir() else shutil.copy(source, folder)
        os.chdir(folder)
        sys.path.insert(0, str(Path("src").resolve()))
        paths = sorted(Path("src/massart", options.module).rglob("*.py"))
        known = [mutant for path in paths for mutant in candidates(path)]
        mutants = random.Random(options.seed).sample(known, options.count)
        print(f"{options.module}: {options.count} of {len(known)} mutants, seed {options.seed}", flush=True)
        mutants = [mutant for mutant in mutants if describe(mutant, KILLED) not in killed]
        if options.control:
            mutants = [replace(mutant, what=NOTHING) for mutant in mutants]
        runner = Runner(options.module, mutants, options.budget)
        target = Path("outcomes.json")

        def collected() -> int:
            files = [f"tests/test_{name}.py" for name in TESTS[options.module]]
            pytest.main([*QUIETLY, *(["-m", "not slow"] if options.fast else []), *files], plugins=[runner])
            limits = [runner.limit(tests) for tests in runner.tests]
            target.write_text(json.dumps([*zip(runner.outcomes, runner.tests, limits, strict=True)]))
            return 0

        in_child(collected, silent=False)
        outcomes = []
        for mutant, (outcome, tests, limit) in zip(mutants, json.loads(target.read_text()), strict=True):
            if outcome == TOP:
                outcome = in_child(partial(_import_and_run, mutant, tests), limit)
                print(describe(mutant, outcome), flush=True)
            outcomes.append(outcome)
        os.chdir(ROOT)
    print(f"{options.module}: {outcomes.count(KILLED)} of {len(outcomes)} killed", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
