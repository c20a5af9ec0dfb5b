"""Inputs of every front end that double, nest, overlap and intersect, and the processor's time that they take.

    python -m tests.fuzz.hostile [json_schema lark gbnf regex structural] [--count 1000] [--seed 0] [--show 10]

For each input: the seconds of ``compile``, of the slowest of the first masks, and of the slowest ``accepts``. The exit
status is 1 if one of them is over two seconds and no ``LimitError`` names a limit, or if a process ends by itself.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import constrain
from tests.support import byte_vocabulary

MOST_SECONDS = 2.0
LAST_SECONDS = 60
"""Of computing, after which an input is ended."""

MOST_BYTES = 4 << 30
MASKS = 40
LETTERS = "abc01 "


def _pattern(source: random.Random, depth: int = 0) -> str:
    """A pattern of few letters with counts inside counts, overlapping alternatives and looks ahead."""
    if depth > source.randint(1, 6):
        return source.choice(["a", "b", "[ab]", ".", "\\d", "[^a]", "ab", "\\w"])
    one, other = _pattern(source, depth + 1), _pattern(source, depth + 1)
    kind = source.randrange(9)
    if kind == 0:
        return f"({one}){{{source.choice(['2', '0,3', '1,', '99', '5,1000', '1000'])}}}"
    if kind == 1:
        return f"({one}|{other}|{one}{other})*"
    if kind == 2:
        return f"({one}){source.choice('*+?')}({one}){source.choice('*+?')}"
    if kind == 3:
        return f"({one})?" * source.choice([2, 10, 60])
    if kind == 4 and depth < 2:
        return f"(?{source.choice('=!')}{one}){other}"
    if kind == 5:
        return "|".join(f"({one}){letter}({other})" for letter in "abcde")
    return one + source.choice(["", ".*", "[ab]*"]) + other


def _names(source: random.Random, name: str) -> list[str]:
    return [f"{name}{number}" for number in range(source.choice([3, 10, 20, 40, 100]))]


def _levels(source: random.Random, name: str, forms: list[str], leaf: str, define: str, used: list[str]) -> list[str]:
    """Definitions, each of which uses the next (N) several times; a few use an earlier one (M), in recursion."""
    names = _names(source, name)
    lines = []
    few = source.sample(forms, source.choice([1, 1, 2, len(forms)]))
    for at, each in enumerate(names[:-1]):
        body = source.choice(few).replace("N", names[at + 1])
        lines.append(f"{each}{define}{body.replace('M', names[source.randrange(at + 1)])}")
    used.append(names[0])
    return [*lines, f"{names[-1]}{define}{leaf}"]


_OF_RULES = [
    *("N N", "N N | N", "N N N | N", 'N "+" N | N', "(N N)*", "N? N? N?", '"(" M ")" | N', "M M | N", "M N | N M | N"),
]


def gbnf(source: random.Random) -> Any:
    """A GBNF grammar."""
    used: list[str] = []
    leaf = source.choice(['"x"', "[ab]", '[^"]*', '"ab" | "a"', '"a"*', '""'])
    forms = [*_OF_RULES, "N{3} N", "N{0,99}", "(N{9}){9}", '(N | "a" N){2,}']
    rules = _levels(source, "a", forms, leaf, " ::= ", used)
    return constrain.Gbnf("\n".join([f"root ::= {used[0]} {source.choice(['', '*', used[0]])}", *rules]))


def lark(source: random.Random) -> Any:
    """A Lark grammar of rules, terminals or both; also with ignored text and templates."""
    used: list[str] = []
    patterns = [f"/{_pattern(source)}/" for _ in range(source.choice([1, 2, 5]))]
    leaf = " | ".join(patterns) if source.random() < 0.6 else source.choice(['"x"', '"ab"i', '"a" | "ab"'])
    lines: list[str] = []
    if source.random() < 0.6:
        forms = ["N N", "N N | N", "(N N)*", "N? N?", "N~2..9", "N & N", "~N N", "(N | N N) & (N N)", "N~50 N"]
        lines += _levels(source, "T", forms, leaf, ": ", used)
        leaf = used.pop()
    if source.random() < 0.6:
        lines += _levels(source, "r", [*_OF_RULES, "N~2..70", "[N] [N] N"], leaf, ": ", used)
    else:
        used.append(leaf)
    if source.random() < 0.2:
        lines.append(source.choice(['%ignore " "', "%ignore /a+/", f"%ignore /{_pattern(source)}/"]))
    if source.random() < 0.1:
        lines.append("many{x}: x x | x many{x}")
        used[0] = f"many{{{used[0]}}}"
    return constrain.Lark("\n".join([f"start: {used[0]}", *lines]))


def regex(source: random.Random) -> Any:
    """A regular expression."""
    pattern = _pattern(source)
    whole = pattern if source.random() < 0.7 else f"({pattern})({_pattern(source)})" * source.choice([2, 9])
    return partial(constrain.Regex, whole, dialect="ecma" if "(?" in whole else "rust")  # it checks the pattern


def json_schema(source: random.Random) -> Any:
    """A JSON Schema whose definitions refer to the next ones."""
    names = _names(source, "d")
    definitions: dict[str, Any] = {names[-1]: _leaf(source)}
    for at, name in enumerate(names[:-1]):
        after = [{"$ref": f"#/$defs/{names[min(len(names) - 1, at + source.choice([1, 1, 2]))]}"} for _ in range(2)]
        definitions[name] = _joined(source, after)
    return {"$ref": f"#/$defs/{names[0]}", "$defs": definitions}


def _leaf(source: random.Random) -> dict[str, Any]:
    return source.choice(
        [
            {"type": "string", "pattern": _pattern(source)},
            {"type": "string", "maxLength": 9, "allOf": [{"pattern": _pattern(source)} for _ in range(3)]},
            {"type": "number", "multipleOf": 0.1, "minimum": 1, "not": {"multipleOf": 0.3}},
            {"enum": list(range(50))},
            {"type": "object", "patternProperties": {letter: {"type": "null"} for letter in "abcdef"}},
            {"type": "array", "uniqueItems": True, "items": {"enum": [1, 2, "a", None]}},
            {},
        ]
    )


def _joined(source: random.Random, after: list[dict[str, Any]]) -> dict[str, Any]:
    one, other = after
    keys = {letter: source.choice(after) for letter in "abcd"}
    return source.choice(
        [
            {source.choice(["allOf", "anyOf", "oneOf"]): after},
            {"type": "array", "prefixItems": after, "minItems": 2, "items": source.choice([one, False, True])},
            {"type": "object", "properties": keys, "required": list("ab"), "additionalProperties": other},
            {"allOf": [{"anyOf": [one, {"not": other}]}, {"not": {"allOf": after}}]},
            {"if": one, "then": other, "else": {"not": one}},
            {"properties": keys, "patternProperties": {"^[a-c]": one, "d|b": other}, "unevaluatedProperties": False},
            {"type": "array", "contains": one, "minContains": 2, "items": other, "unevaluatedItems": False},
            {"anyOf": [_leaf(source), one, {"type": "array", "items": other}]},
        ]
    )


def structural(source: random.Random) -> Any:
    """A structural tag."""
    return partial(constrain.parts.StructuralTag, {"type": "structural_tag", "format": _format(source, 0)})


def _format(source: random.Random, depth: int) -> dict[str, Any]:
    if depth > source.randint(1, 7):
        return source.choice(
            [
                {"type": "const_string", "value": "ab"},
                {"type": "regex", "pattern": _pattern(source)},
                {"type": "json_schema", "json_schema": _leaf(source)},
                {"type": "any_text"},
            ]
        )
    inner = [_format(source, depth + 1) for _ in range(source.choice([2, 2, 3]))]
    tag = {
        "type": "tag",
        "begin": source.choice(["<a>", "<", "a"]),
        "content": inner[0],
        "end": source.choice(["</a>", ">"]),
    }
    return source.choice(
        [
            {"type": "sequence", "elements": [*inner, inner[0]]},
            {"type": "or", "elements": [*inner, inner[0]]},
            tag,
            {"type": "triggered_tags", "triggers": ["<"], "tags": [{**tag, "begin": "<a>"}, {**tag, "begin": "<ab>"}]},
            {"type": "tags_with_separator", "tags": [tag], "separator": source.choice([",", "a"])},
        ]
    )


KINDS: dict[str, Callable[[random.Random], Any]] = {
    "json_schema": json_schema,
    "lark": lark,
    "gbnf": gbnf,
    "regex": regex,
    "structural": structural,
}


def measure(given: Any, seed: int) -> dict[str, Any]:
    """Compiles an input and generates with it; returns seconds, the error, and the limits met."""
    vocabulary, source = byte_vocabulary(), random.Random(seed)
    found: dict[str, Any] = {"compile": 0.0, "mask": 0.0, "accept": 0.0, "outcome": "compiled"}

    def timed(name: str, action: Callable[[], Any]) -> Any:
        begin = time.process_time()
        try:
            return action()
        finally:
            found[name] = max(found[name], time.process_time() - begin)

    try:
        source_of = given if callable(given) else lambda: given
        constraint = timed("compile", lambda: constrain.compile(source_of(), vocabulary, cache=False))
        matcher, row = constraint.matcher(), constraint.allocate_bitmask()[0]
        written = b""
        for _ in range(MASKS):
            timed("mask", lambda: matcher.fill_bitmask(row))
            allowed = [token for token in range(256) if row[token // 32] >> (token % 32) & 1]
            if not allowed:
                break
            token = source.choice(sorted(allowed, key=lambda token: chr(token) not in LETTERS)[:4])
            timed("accept", partial(matcher.accept, token))
            written += bytes([token])
        found["met"] = list(matcher.limits_met)
        for text in (written, written * 20, b"a" * 300, b"ab" * 150):
            timed("accept", partial(constraint.accepts, text))
    except constrain.ConstrainError as error:
        found["outcome"] = f"{type(error).__name__}: {str(error)[:300]}"
    return found


def judged(kind: str, seed: int) -> dict[str, Any]:
    """Measures one input in a process of its own."""
    given = KINDS[kind](random.Random(f"{kind} {seed}"))
    shown = json.dumps(given) if isinstance(given, dict) else repr(given.args if isinstance(given, partial) else given)
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_CPU, (LAST_SECONDS, LAST_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        try:
            found = measure(given, seed)
        except BaseException as error:  # noqa: BLE001 - the parent tells it
            found = {"outcome": f"WRONG {type(error).__name__}: {error}"[:200]}
        os.write(writing, json.dumps(found).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    _, status, usage = os.wait4(child, 0)
    found = json.loads(text) if text else {"outcome": f"WRONG: ended with status {status}"}
    slowest = max((found.get(part, 0.0) for part in ("compile", "mask", "accept")), default=0.0)
    is_limited = "MAX_" in found["outcome"] and slowest < 2 * MOST_SECONDS
    found["wrong"] = found["outcome"].startswith("WRONG") or (slowest > MOST_SECONDS and not is_limited)
    return {"kind": kind, "seed": seed, **found, "slowest": slowest, "MiB": usage.ru_maxrss >> 10, "input": shown}


def main() -> int:
    """Measures as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.hostile", description=__doc__)
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first input; the next ones follow")
    parser.add_argument("--show", type=int, default=10, help="how many of the slowest are shown")
    options = parser.parse_args()
    wrong = 0
    for kind in options.kinds:
        found = [judged(kind, options.seed + number) for number in range(options.count)]
        found.sort(key=lambda each: (each["wrong"], each["slowest"]), reverse=True)
        limited, bad = sum("LimitError" in each["outcome"] for each in found), sum(each["wrong"] for each in found)
        compiled = sum(each["outcome"] == "compiled" for each in found)
        print(f"{kind}: {len(found)} inputs, {compiled} compiled, {limited} limited, {bad} wrong", flush=True)
        for part in ("compile", "mask", "accept"):
            print(f"  slowest {part}: {max(each.get(part, 0.0) for each in found):.2f} s")
        for each in found[: max(options.show, bad)]:
            seconds = " ".join(f"{part} {each.get(part, 0.0):.2f}" for part in ("compile", "mask", "accept"))
            mark = "WRONG " if each["wrong"] else ""
            about = f"{each['outcome']} {' '.join(each.get('met', []))}"
            print(
                f"  {mark}{each['seed']}: {seconds} s, {each['MiB']} MiB, {about}\n    {each['input'][:300]}",
                flush=True,
            )
        wrong += bad
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
