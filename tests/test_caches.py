"""Whatever a module remembers has a limit in bytes, or a written reason why it stays small."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, MutableMapping, MutableSequence, MutableSet
from weakref import WeakKeyDictionary, WeakValueDictionary

import pytest

import constrain
from constrain.json_schema.numbers.shape import NumberShape
from constrain.json_schema.numbers.spellings import SPELLING_BYTES, all_spellings
from constrain.language.schema_text import PARSED_BYTES
from constrain.language.tree import tree_bytes
from constrain.regex.unicode.properties import _property, property_ranges
from constrain.remembering import Memory, remembered

SMALL = {
    "constrain.engine.staged._ending": "a byte for each token of each vocabulary that lives",
    "constrain.server.sandbox.worker._kept": "the tables of the server's operator",
    "constrain.tables.columns._columns": "columns, for as long as somebody uses them",
    "constrain.tables.dependent._rows": "rows, for as long as somebody uses them",
    "constrain.batch.stores.locks._held": "eight letters for each lock that this process holds",
    "constrain.cache._cache_of": "a path and a lock for each cache directory that the program names",
    "constrain.llama.costs.kept._known": "some thirty numbers for each model, and number of answers at once",
    "constrain.llama.hashes._known": "a hash for each model file",
    "constrain.llama.lookup._loaded": "one model, the last",
    "constrain.chat.answers.call_or_content._known_first_bytes": "two bytes a token, while the vocabulary lives",
    "constrain.json_schema.formats.expressions._identifier": "four kinds of identifiers",
    "constrain.json_schema.formats.expressions._uuid_of": "versions 1 to 8",
    "constrain.json_schema.emission.scalars._unbounded": "32 entries at most, for all ways of spelling numbers",
    "constrain.server.openapi.shapes._names": "the names of types in each shape, as the source has them",
    "constrain.server.playground.page._tagged": "the files of the page, 100 kB",
    "constrain.regex.unicode.properties._aliases": "two tables of names",
    "constrain.regex.unicode.properties._orbit_of": "one table for each dialect",
    "constrain.regex.unicode.properties._orbits": "one table for each dialect",
    "constrain.regex.unicode.properties.perl_class": "three letters in four dialects",
    "constrain.inspection.check._readable": "a bit for each token of each vocabulary that lives",
    "constrain.server.requests.declared._known_to": "the names of the fields of some twenty bodies",
    "constrain.server.serving.sizes._longest": "a number a vocabulary, for as long as the vocabulary lives",
    "constrain.server.sandbox.worker._vocabularies": "the vocabularies of the server's models",
}
"""Caches without a limit in bytes, and why they need none."""


def modules() -> Iterator[str]:
    for found in pkgutil.walk_packages(constrain.__path__, "constrain."):
        if not found.name.endswith("__main__"):
            yield found.name


def takes_nothing(function: object) -> bool:
    return callable(function) and not inspect.signature(function).parameters


def may_grow(name: str, value: object) -> bool:
    """Is it a collection that is filled later? What is written once has a name in capitals or is of a class."""
    if isinstance(value, (WeakKeyDictionary, WeakValueDictionary)):
        return True
    is_collection = isinstance(value, (MutableMapping, MutableSequence, MutableSet))
    return is_collection and not name.startswith("__") and name != name.upper()


def unbounded_caches() -> dict[str, object]:
    found: dict[str, object] = {}
    for module_name in modules():
        module = importlib.import_module(module_name)
        for name, value in vars(module).items():
            if getattr(value, "__module__", module_name) != module_name and not may_grow(name, value):
                continue  # of another module, where it is looked at
            if (hasattr(value, "cache_info") and not takes_nothing(value)) or may_grow(name, value):
                found[f"{module_name}.{name}"] = value
    return found


@pytest.mark.slow
def test_every_cache_has_a_limit_in_bytes_or_a_reason_to_have_none() -> None:
    assert sorted(unbounded_caches().keys() - SMALL.keys()) == []


def memories() -> dict[str, Memory]:
    found = {}
    for module_name in modules():
        for name, value in vars(importlib.import_module(module_name)).items():
            memory = getattr(value, "memory", None)
            if isinstance(memory, Memory):
                found[f"{module_name}.{name}"] = memory
    return found


@pytest.mark.slow
def test_all_limits_together_are_bounded() -> None:
    assert sum({id(memory): memory.max_bytes for memory in memories().values()}.values()) < 512 << 20


def test_expressions_of_numbers_count_by_what_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = all_spellings.memory  # type: ignore[attr-defined]
    memory.clear()
    made = [all_spellings(NumberShape(minimum=number, maximum=3 * number), by_double=True) for number in range(1, 4)]
    assert memory.bytes >= sum(map(tree_bytes, made))
    monkeypatch.setattr(memory, "max_bytes", memory.bytes)
    all_spellings(NumberShape(minimum=5, maximum=7), by_double=True)
    assert len(memory) <= len(made)
    assert memory.bytes <= memory.max_bytes < SPELLING_BYTES


def test_names_of_properties_that_do_not_exist_do_not_pile_up() -> None:
    memory = _property.memory  # type: ignore[attr-defined]
    for number in range(100):
        assert property_ranges(f"nonsense {number} " + "a" * 100_000) is None
    assert memory.bytes <= memory.max_bytes


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
"""MiB that a process may take beside what it remembers: the last constraint while it is made, and what malloc keeps."""


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
    assert int(ran.stdout) < 32 + (PARSED_BYTES >> 20) + ALLOWANCE_MIB
