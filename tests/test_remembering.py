"""Results that are remembered within a number of bytes."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from constrain.remembering import remembered


def test_results_are_remembered_while_they_fit() -> None:
    made: list[str] = []

    @remembered(10, 100, len)
    def double(text: str) -> str:
        made.append(text)
        return 2 * text

    for _ in range(2):
        assert double("a" * 40) == "a" * 80
        assert double("b" * 40) == "b" * 80
    assert len(made) == 2
    double("c" * 40)  # together they are too many: the first is forgotten
    double("a" * 40)
    assert len(made) == 4


def test_what_is_too_large_is_not_remembered_and_drops_nothing() -> None:
    made: list[str] = []

    @remembered(10, 100, len)
    def double(text: str) -> str:
        made.append(text)
        return 2 * text

    double("a")
    for _ in range(2):
        double("b" * 101)
    double("a")
    assert made == ["a", "b" * 101, "b" * 101]


def test_equal_arguments_of_other_types_or_names_have_results_of_their_own() -> None:
    @remembered(10, 100, lambda *_, **__: 1)
    def shown(*args: object, **named: object) -> str:
        return f"{args} {named}"

    for _ in range(2):
        for number in (1, True, 1.0):
            assert shown(number) == f"({number!r},) {{}}"
            assert shown(a=number) == f"() {{'a': {number!r}}}"
        assert shown(("a", 1), a=1) == "(('a', 1),) {'a': 1}"
        assert shown(("a", 1), ("a", 1)) == "(('a', 1), ('a', 1)) {}"


ALLOWANCE_MIB = 110
"""MiB that a process may take beside remembered constraints: the last one while it is made, and what malloc keeps."""


@pytest.mark.slow
def test_a_process_that_compiles_many_large_enums_stays_within_the_limit() -> None:
    program = """
        import constrain
        from constrain.engine import remembered
        remembered.CACHED_BYTES = 32 << 20
        resident = lambda: int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20
        vocabulary = constrain.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
        constrain.compile(dict(enum=["a", "b"]), vocabulary, cache=False)
        before = resident()
        for number in range(24):
            values = [f"{number}-{index:06d}-abcdefghijklm" for index in range(40_000)]
            constrain.compile(dict(enum=values), vocabulary, cache=False)
        print(resident() - before)
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True, timeout=120
    )
    assert int(ran.stdout) < 32 + ALLOWANCE_MIB
