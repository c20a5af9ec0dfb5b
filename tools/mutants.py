"""Plants bugs, one at a time, and tells which of them the tests find.

    python -m tools.mutants constrain/server -- pytest -x -q -m "not slow" {tests}
    python -m tools.mutants constrain/kernel --build "cmake --build build/dev" -- pytest -x -q tests/kernel

A bug is one mutation of one line: a condition turned, a number one larger, a statement left out. It counts as found if
the command after ``--`` fails or takes too long; ``{tests}`` in it is the folder of tests of the changed file. The file
is restored after each bug. A bug that survives is one that no test finds, or changes nothing but speed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shlex
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parents[1]

Edit: TypeAlias = "tuple[int, int, str]"
"""Two offsets in a source, and what takes the place of the text between them."""

_PAIRS = [("<", "<="), (">", ">="), ("==", "!="), ("+", "-"), ("&&", "||"), ("and", "or"), ("in", "not in")]
_PAIRS += [("is", "is not"), ("min", "max"), ("true", "false"), ("True", "False")]
_TURNED = dict(_PAIRS) | {b: a for a, b in _PAIRS}
_HIDDEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|//.*|^\s*(?:#|template|using|static_assert)\b.*')
_WORD = re.compile(r"(?<= )(<=?|>=?|==|!=|&&|\|\||\+|-)(?= )|\b(min|max)(?=\()|(?<=return )(true|false)(?=;)")
_NUMBER = re.compile(r"(?<=[ (\[{])\d+(?=[ ,;)\]}])")
_CONDITION = re.compile(r"(?<=if \(|le \()(?:[^()=;]|[=!<>]=|\((?:[^()]|\([^()]*\))*\))+(?=\))")
_STATEMENT = re.compile(r"(\+\+|--)?[a-z][\w.>\[\]*:-]*(\(.*\)| ([-+*/|&^]|<<|>>)?= .*)?;|(continue|break|return);")


def cpp_edits(source: str) -> Iterator[Edit]:
    """Returns the mutations of C++, found line by line; not in strings, comments, templates and directives."""
    start, before = 0, ";"
    for line in source.splitlines(keepends=True):
        code = _HIDDEN.sub(lambda match: "_" * len(match[0]), line).rstrip("\n_ ")
        found = [(*match.span(), _TURNED[match[0]]) for match in _WORD.finditer(code)]
        found += [(*match.span(), str(int(match[0]) + 1)) for match in _NUMBER.finditer(code)]
        found += [(*match.span(), f"!({line[slice(*match.span())]})") for match in _CONDITION.finditer(code)]
        if before[-1] in ";{}:" and _STATEMENT.fullmatch(code.strip()):
            found.append((len(code) - len(code.lstrip()), len(code), ";"))
        yield from ((start + first, start + last, new) for first, last, new in found)
        start, before = start + len(line), code.rstrip() or before


def python_edits(source: str) -> Iterator[Edit]:
    """Returns the mutations of Python, found in its tree."""
    lines = source.splitlines(keepends=True)

    def offset(line: int, column: int) -> int:
        return len("".join(lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())

    def replaced(node: ast.expr | ast.stmt, new: str) -> Edit:
        return offset(node.lineno, node.col_offset), offset(node.end_lineno or 0, node.end_col_offset or 0), new

    def turned(left: ast.expr, right: ast.expr) -> Iterator[Edit]:
        first, last = replaced(left, "")[1], replaced(right, "")[0]
        if match := re.compile(r"not in|is not|[<>=!]=|\w+|[-+<>]").search(source, first, last):
            yield *match.span(), _TURNED[match[0]]

    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left, _, [right]) | ast.BoolOp(_, [left, right, *_]):
                yield from turned(left, right)
            case ast.BinOp(left, ast.Add() | ast.Sub(), right):
                yield from turned(left, right)
            case ast.Constant(int() as value) if not isinstance(value, bool):
                yield replaced(node, str(value + 1))
            case ast.Return(ast.Constant(bool() as value)):
                yield replaced(node, f"return {not value}")
            case ast.Name("min" | "max"):
                yield replaced(node, _TURNED[node.id])
            case ast.Expr(ast.Call() | ast.Await()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
                yield replaced(node, "pass")
            case ast.Assign([ast.Attribute() | ast.Subscript()]) | ast.Return(None):
                yield replaced(node, "pass")
            case ast.If(test) | ast.While(test) | ast.IfExp(test) if ast.unparse(test) != "TYPE_CHECKING":
                yield replaced(test, f"(not ({ast.get_source_segment(source, test)}))")


def choose(prefix: str, seed: int) -> Iterator[tuple[str, Path, str, str]]:
    """Returns place, file, source, and the source with a bug: lines at random, and then a mutation of the line."""
    lines: dict[tuple[Path, int], list[Edit]] = {}
    for path in sorted(ROOT.glob(f"{prefix}*" if (ROOT / prefix).is_file() else f"{prefix}/**/*")):
        if edits := {".py": python_edits, ".cpp": cpp_edits, ".h": cpp_edits}.get(path.suffix):
            source = path.read_text("utf-8")
            for edit in edits(source):
                lines.setdefault((path, source.count("\n", 0, edit[0]) + 1), []).append(edit)
    draw = random.Random(seed)
    for path, line in draw.sample(list(lines), len(lines)):
        source, (first, last, new) = path.read_text("utf-8"), draw.choice(lines[path, line])
        yield f"{path.relative_to(ROOT)}:{line}", path, source, source[:first] + new + source[last:]


def attempt(command: Sequence[str], limit: float = 1000) -> tuple[bool, str]:
    """Runs a command; returns whether it succeeds within ``limit`` seconds, and what it prints."""
    pipe, both = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=both, errors="replace", start_new_session=True) as run:
        try:
            printed = run.communicate(timeout=limit)[0]
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            return False, "takes too long"
    return run.returncode == 0, printed


def main() -> None:
    """Prints a row for each bug: its place, the line before and after, and the first test that failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description="Plants bugs that tests should find.")
    parser.add_argument("prefix", help="file or folder to change, such as constrain/server")
    parser.add_argument("--seed", type=int, default=1, help="the same seed plants the same bugs (default: 1)")
    parser.add_argument("--count", type=int, default=50, help="bugs that compile (default: 50)")
    parser.add_argument("--limit", type=float, default=300, help="seconds for the tests of a bug (default: 300)")
    parser.add_argument("--build", default="true", help="compiles the sources; a bug that it refuses does not count")
    parser.add_argument("command", nargs="+", help="the tests, after --")
    arguments = parser.parse_args()
    left = arguments.count
    print("| place | line | with the bug | found by |\n|:--|:--|:--|:--|")
    for place, path, source, changed in choose(arguments.prefix, arguments.seed):
        parts = [folder.parts[1:] for folder in path.relative_to(ROOT).parents]
        tests = next(folder for part in parts if (folder := ROOT.joinpath("tests", *part)).is_dir())
        pairs = zip(source.splitlines(), changed.splitlines(), strict=False)
        shown = next(f"`{before.strip()}` | `{after.strip()}`" for before, after in pairs if before != after)
        try:
            path.write_text(changed, "utf-8")
            if attempt(shlex.split(arguments.build))[0]:
                command = [part.replace("{tests}", str(tests)) for part in arguments.command]
                is_right, out = attempt(command, arguments.limit)
                test = re.search(r"(?m)^(?:FAILED|ERROR) (.+?)(?: - .*)?$", out) or re.search(r"in (test_\w+)", out)
                found = "survives" if is_right else test[1] if test else out.strip().rpartition("\n")[2]
                print(f"| {place} | {shown} | {found} |", flush=True)
                if not (left := left - 1):
                    break
        finally:
            path.write_text(source, "utf-8")


if __name__ == "__main__":
    main()
