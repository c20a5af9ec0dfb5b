"""Constraints on disk: found again by other processes, never mistaken, never in the way."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import date
from enum import Enum
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter, create_model
from pydantic.dataclasses import dataclass

import constrain
from constrain import cache as _cache
from constrain import private_folders
from constrain.engine import remembered
from constrain.engine.compiling import compile_any
from constrain.language import tree
from constrain.language.digest import grammar_digest, source_digest
from constrain.language.grammar import Capture, Grammar, Rule, Terminal
from constrain.language.result import result_type
from constrain.remembering import Memory
from tests.support import Tokens, Walker, byte_vocabulary, demo_vocabulary, each_row, for_each, small_vocabulary

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"enum": ["a", "bé", 3]}}},
    "required": ["name"],
}


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The directory that conftest has named in CONSTRAIN_CACHE."""
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def _forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is remembered from one call to the next, but for what is on disk."""
    monkeypatch.setattr(remembered, "CACHED_CONSTRAINTS", 0)


def is_found(made: constrain.Constraint) -> bool:
    """Was it restored? Then the places of its terminals are those of the file."""
    return isinstance(made._places, bytes)


def keep(schema: object = SCHEMA, vocabulary: constrain.Vocabulary | None = None, **options: Any) -> Path:
    made = constrain.compile(schema, vocabulary or small_vocabulary(), **options)
    file = made.precompute(max_masks=50).file
    assert file is not None
    return file


def masks(made: constrain.Constraint, vocabulary: constrain.Vocabulary, seed: int = 0) -> list[bytes]:
    """All masks along some random texts."""
    walker, rng, seen = Walker(made, vocabulary), Random(seed), []
    for _ in range(6):
        matcher, text = walker.prefix(rng, 8)
        matcher.reset()
        for token in Tokens(vocabulary).split(text):
            matcher.fill_bitmask(walker.row)
            seen.append(walker.row.tobytes())
            assert matcher.accept(token)
    return seen


def test_a_kept_constraint_is_found_and_has_the_same_masks(cache: Path) -> None:
    vocabulary = small_vocabulary()
    made = constrain.compile(SCHEMA, vocabulary)
    assert not is_found(made)
    assert not cache.exists(), "nobody asked for it"
    assert made.precompute(max_masks=50).masks == 50
    found = constrain.compile(SCHEMA, small_vocabulary())
    assert is_found(found)
    assert masks(found, vocabulary) == masks(constrain.compile(SCHEMA, vocabulary, cache=False), vocabulary)


def test_a_found_constraint_tells_all_that_a_made_one_does() -> None:
    vocabulary = small_vocabulary()
    schema = {"$id": "http://example.org", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"], "default": 1}
    schema["exclusiveMinimum"] = True  # warned of
    made = constrain.compile(schema, vocabulary, cache=False)
    assert made.warnings
    keep(schema, vocabulary)
    found = constrain.compile(schema, vocabulary)
    assert (found.policies, found.warnings) == (made.policies, made.warnings)
    assert found.policies["formats"] == "assert"
    for each in (found.policies, made.policies, found.report.policies, made.report.policies):
        assert isinstance(each, MappingProxyType)
    assert (found.report.rules, found.report.terminals) == (made.report.rules, made.report.terminals)
    explanations = []
    for each in (made, found):
        matcher = each.matcher()
        assert matcher.accept_many(b'{"a": "') == 7
        explanations.append(matcher.explain(ord("z")))
    assert explanations[0] == explanations[1]
    assert "/properties/a" in explanations[0]
    assert is_found(found)
    assert found.grammar.dump() == made.grammar.dump()


OTHERS: dict[str, dict[str, Any]] = {
    "whitespace": {"whitespace": "compact"},
    "order": {"property_order": "any"},
    "numbers": {"numbers": "any"},
    "formats": {"formats": "annotation"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_policies_are_another_constraint(name: str) -> None:
    keep()
    other = constrain.compile(SCHEMA, small_vocabulary(), **OTHERS[name])
    assert not is_found(other)
    keep(**OTHERS[name])
    assert is_found(constrain.compile(SCHEMA, small_vocabulary(), **OTHERS[name]))
    assert is_found(constrain.compile(SCHEMA, small_vocabulary()))


def test_other_schemas_and_vocabularies_are_other_constraints() -> None:
    keep()
    assert not is_found(constrain.compile({"type": "integer"}, small_vocabulary()))
    assert not is_found(constrain.compile(SCHEMA, small_vocabulary(1)))


def grammar(letter: bytes) -> constrain.Grammar:
    builder = constrain.grammars.GrammarBuilder()
    deep: tree.Expression = tree.Literal(letter)
    for _ in range(300):
        deep = tree.Concatenation((deep, tree.Literal(b"x")))
    word = builder.terminal("word", tree.Alternation((deep, tree.Literal(b"b"))))
    start = builder.rule("start")
    builder.define(start, [[word]])
    return builder.build()


def test_grammars_are_kept_too() -> None:
    vocabulary = small_vocabulary()
    file = keep(grammar(b"a"), vocabulary)
    assert keep(grammar(b"a"), vocabulary) == file
    found = constrain.compile(grammar(b"a"), vocabulary)
    assert is_found(found)
    assert found.accepts(b"a" + 300 * b"x")
    assert found.grammar.terminals[0].name == "word"
    other = constrain.compile(grammar(b"c"), vocabulary)
    assert not is_found(other)
    assert not other.accepts(b"a" + 300 * b"x")


def test_the_cache_can_be_another_one_or_none(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = small_vocabulary()
    assert constrain.compile(SCHEMA, vocabulary, cache=False).precompute(max_masks=5).file is None
    with_registry = constrain.compile({"$ref": "urn:x"}, vocabulary, registry={"urn:x": {"type": "integer"}})
    assert with_registry.precompute(max_masks=5).file is None
    other = tmp_path / "other"
    assert keep(cache=other).is_relative_to(other)
    assert not cache.exists()
    assert is_found(constrain.compile(SCHEMA, vocabulary, cache=other))
    assert not is_found(constrain.compile(SCHEMA, vocabulary))
    for off in ("", "0"):
        monkeypatch.setenv("CONSTRAIN_CACHE", off)
        assert constrain.compile(SCHEMA, vocabulary).precompute(max_masks=5).file is None
    monkeypatch.delenv("CONSTRAIN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    private_folders._users_own.cache_clear()
    try:
        assert keep().is_relative_to(tmp_path / "home" / "constrain-llm")
    finally:
        private_folders._users_own.cache_clear()


def test_a_constraint_in_memory_is_not_mistaken_for_one_of_another_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "CACHED_CONSTRAINTS", 8)
    vocabulary = small_vocabulary()
    one = constrain.compile(SCHEMA, vocabulary)
    assert constrain.compile(SCHEMA, vocabulary) is one
    other = constrain.compile(SCHEMA, vocabulary, cache=tmp_path / "other")
    assert other.precompute(max_masks=1).file is not None
    assert constrain.compile(SCHEMA, vocabulary) is one


def test_bounds_must_not_be_negative() -> None:
    with pytest.raises(ValueError, match="negative"):
        constrain.compile(SCHEMA, small_vocabulary()).precompute(max_masks=-1)


# Other processes

SECOND = """
import hashlib, json, sys
from random import Random
import constrain
from tests.support import Walker, small_vocabulary
vocabulary = small_vocabulary()
made = constrain.compile(json.loads(sys.argv[1]), vocabulary)
row = made.allocate_bitmask()[0]
made.matcher().fill_bitmask(row)
front_end = "constrain.json_schema.compiler" in sys.modules
texts = [Walker(made, vocabulary).prefix(Random(seed), 10)[1] for seed in range(8)]
digest = hashlib.sha256()
for text in texts:
    matcher = made.matcher()
    for byte in text:
        matcher.fill_bitmask(row)
        digest.update(row.tobytes())
        assert matcher.accept(byte)
grammar = hashlib.sha256(made.grammar.dump().encode()).hexdigest()
print(json.dumps({"front_end": front_end, "masks": digest.hexdigest(), "grammar": grammar}))
"""


def second(*, hash_seed: int = 0, **environment: str) -> dict[str, Any]:
    full = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, "-W", "error", "-c", SECOND, json.dumps(SCHEMA)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**full, **environment})
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.slow
def test_another_process_finds_a_constraint_without_the_compilers() -> None:
    cold = second(hash_seed=1)
    assert cold["front_end"]
    keep()
    warm = second(hash_seed=2)
    assert not warm["front_end"]
    assert warm["masks"] == cold["masks"]
    assert warm["grammar"] == cold["grammar"], "the front end gives terminals other numbers in other processes"


# Files that are not what they should be


def key() -> bytes:
    """Under which SCHEMA is kept."""
    keeping = constrain.compile(SCHEMA, small_vocabulary(2))._keeping
    assert keeping is not None
    return keeping.digest()


def expect_rebuilt(file: Path, why: str) -> None:
    """One warning, the right masks, and a file that serves again."""
    vocabulary = small_vocabulary()
    with pytest.warns(RuntimeWarning, match=why) as caught:
        made = constrain.compile(SCHEMA, vocabulary)
    assert len(caught) == 1
    assert not is_found(made)
    assert made.accepts(b'{"name": "x"}')
    assert is_found(constrain.compile(SCHEMA, vocabulary)), "the file was not made anew"
    assert file.exists()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["truncated", "a bit is another"])
def test_every_damage_is_noticed(how: str) -> None:
    file, vocabulary, rng = keep(), small_vocabulary(), Random(2)
    whole = file.read_bytes()
    cached = _cache.find_cache()
    assert cached is not None
    assert cached.load(vocabulary, key()) is not None
    for place in {*range(0, 200, 2), *range(len(whole) - 20, len(whole)), *rng.sample(range(len(whole)), 40)}:
        other = bytes([whole[place] ^ 1 << rng.randrange(8)]) + whole[place + 1 :]
        file.write_bytes(whole[:place] + (b"" if how == "truncated" else other))
        with pytest.raises(_cache.RejectedFileError):
            cached.load(vocabulary, key())
    expect_rebuilt(file, "")


def test_a_file_of_another_vocabulary_or_schema_is_noticed() -> None:
    file = keep()
    shutil.copy(keep({"type": "integer"}), file)
    expect_rebuilt(file, "another schema or grammar")
    other = small_vocabulary(1)
    foreign = keep(vocabulary=other)
    assert foreign.parent != file.parent
    shutil.copy(foreign, file)
    expect_rebuilt(file, "another vocabulary")


def test_builds_keep_files_beside_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a word, however often they take turns; what one has kept, the other keeps, too."""
    with monkeypatch.context() as older:
        older.setattr(_cache, "producer", lambda: bytes(32))
        file = keep()
    content = file.read_bytes()
    assert not is_found(constrain.compile(SCHEMA, small_vocabulary()))
    for _ in range(2):
        assert is_found(constrain.compile(SCHEMA, small_vocabulary()))
        with monkeypatch.context() as older:
            older.setattr(_cache, "producer", lambda: bytes(32))
            assert is_found(constrain.compile(SCHEMA, small_vocabulary()))
    assert file.read_bytes() == content


def test_a_file_that_another_build_wrote_is_noticed_where_ours_should_be(monkeypatch: pytest.MonkeyPatch) -> None:
    file = keep()
    with monkeypatch.context() as older:
        older.setattr(_cache, "producer", lambda: bytes(32))
        shutil.copy(keep(), file)
    expect_rebuilt(file, "another version")


def test_an_edit_of_any_module_that_makes_constraints_is_another_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "constrain"
    shutil.copytree(Path(_cache.__file__).parent, package)
    monkeypatch.setattr(_cache, "__file__", str(package / "cache.py"))
    before = _cache.producer.__wrapped__()
    assert before == _cache.producer.__wrapped__()
    (package / "server" / "app.py").write_text("")
    assert before == _cache.producer.__wrapped__()
    for module in ("lark/common.py", "composition/grammar.py", "chat/answers/escapes.py", "engine/constraint.py"):
        with (package / module).open("a") as file:
            file.write("#")
        now = _cache.producer.__wrapped__()
        assert now != before
        before = now


def test_damaged_mask_parts_are_noticed() -> None:
    file = keep()
    parts = file.parent / "parts"
    whole = bytearray(parts.read_bytes())
    whole[len(whole) // 2] ^= 4
    parts.write_bytes(whole)
    with pytest.warns(RuntimeWarning, match="parts is damaged"):
        vocabulary = small_vocabulary()
    found = constrain.compile(SCHEMA, vocabulary)
    assert masks(found, vocabulary) == masks(constrain.compile(SCHEMA, vocabulary, cache=False), vocabulary)
    with pytest.warns(RuntimeWarning, match="parts is damaged"):
        found.precompute(max_masks=1)
    small_vocabulary()


# Directories that are not what they should be


def expect_not_used(why: str) -> None:
    """One warning, and everything works."""

    def use() -> None:
        for _ in range(2):
            made = constrain.compile(SCHEMA, small_vocabulary())
            assert made.precompute(max_masks=5).file is None
            assert made.accepts(b'{"name": "x"}')

    with pytest.warns(RuntimeWarning, match=why) as caught:
        use()
    assert len(caught) == 1


def version(cache: Path) -> Path:
    return cache / f"v{_cache.FORMAT}"


def link(cache: Path) -> None:
    shutil.rmtree(version(cache))
    (cache / "elsewhere").mkdir(mode=0o700)
    version(cache).symlink_to(cache / "elsewhere")


def put_a_file(cache: Path) -> None:
    shutil.rmtree(cache)
    cache.write_text("")


@each_row(
    "spoil, why",
    (lambda cache: version(cache).chmod(0o755), "its mode must be 700"),
    (lambda cache: (version(cache) / "seed").write_bytes(b"short"), "seed is damaged"),
    (link, "no directory"),
    (put_a_file, "not used"),
    ids=["others may use it", "a damaged seed", "a link", "a file"],
)
def test_a_directory_that_is_not_one_of_the_user_alone_is_not_used(
    cache: Path, spoil: Callable[[Path], object], why: str
) -> None:
    keep()
    spoil(cache)
    _cache._cache_of.cache_clear()
    expect_not_used(why)


@pytest.mark.parametrize("call", ["open", "write", "link", "replace"])
def test_a_file_that_cannot_be_written_fails_no_compilation(
    call: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = keep()
    file.write_bytes(b"damaged")
    before = sorted(cache.rglob("*"))
    _cache._cache_of.cache_clear()
    real_open, real_write = os.open, private_folders.write_new

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def open_or_fail(path: Any, flags: int, *mode: int) -> int:
        return fail() if flags & os.O_CREAT else real_open(path, flags, *mode)

    def begin(path: Path, *parts: bytes) -> None:
        real_write(path, *(part[:1] for part in parts))
        fail()

    owner, name, replacement = {
        "open": (os, "open", open_or_fail),
        "write": (private_folders, "write_new", begin),
        "link": (os, "link", fail),
        "replace": (Path, "replace", fail),
    }[call]
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        patch.setattr(owner, name, replacement)
        for _ in range(2):
            assert constrain.compile(SCHEMA, small_vocabulary()).accepts(b'{"name": "x"}')
    told = [str(warning.message) for warning in caught if "is not used" in str(warning.message)]
    assert len(told) == 1
    assert os.strerror(errno.ENOSPC) in told[0]
    assert sorted(cache.rglob("*")) == before
    with pytest.warns(RuntimeWarning, match="made anew"):
        constrain.compile(SCHEMA, small_vocabulary())
    assert is_found(constrain.compile(SCHEMA, small_vocabulary()))


def test_the_directory_stays_within_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    first = keep({"const": "first"})
    size = first.stat().st_size
    parts = (first.parent / "parts").stat().st_size
    monkeypatch.setattr(_cache, "CACHE_BYTES", 4 * size + 2 * parts)
    abandoned = first.parent / ".draft.tmp"
    abandoned.write_bytes(b"begun")
    os.utime(abandoned, (1, 1))
    begun = first.parent / ".other.tmp"
    begun.write_bytes(b"begun")
    old = time.time() - 10_000
    for number in range(7):
        os.utime(first, (old, old))
        assert is_found(constrain.compile({"const": "first"}, small_vocabulary()))  # and marked as used
        kept = keep({"const": f"number {number}"})
        os.utime(kept, (old + 1 + number, old + 1 + number))
    total = sum(path.stat().st_size for path in first.parent.iterdir())
    assert total <= _cache.CACHE_BYTES
    assert first.exists(), "what is used stays"
    assert not abandoned.exists()
    assert begun.exists()
    assert is_found(constrain.compile({"const": "number 6"}, small_vocabulary()))
    assert not is_found(constrain.compile({"const": "number 0"}, small_vocabulary()))
    monkeypatch.setattr(_cache, "CACHE_BYTES", 1_000)
    with pytest.warns(RuntimeWarning, match="may hold"):
        assert constrain.compile(SCHEMA, small_vocabulary()).precompute(max_masks=5).file is None


def test_a_file_may_be_removed_or_replaced_while_it_is_in_use() -> None:
    vocabulary = small_vocabulary()
    file = keep(vocabulary=vocabulary)
    found = constrain.compile(SCHEMA, vocabulary)
    keep(vocabulary=vocabulary)
    file.unlink()
    shutil.rmtree(file.parent.parent)
    assert masks(found, vocabulary) == masks(constrain.compile(SCHEMA, vocabulary, cache=False), vocabulary)


@pytest.mark.slow  # reads the vocabulary of the demo model, by whose file the command knows it
def test_generate_finds_what_the_command_line_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from constrain.cli.program import main

    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA, indent=1, ensure_ascii=False), encoding="utf-8")
    command = ["constrain", "compile", "schema.json", "--max-masks", "40", "--whitespace", "compact"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    vocabulary = demo_vocabulary()
    for given in (SCHEMA, (tmp_path / "schema.json").read_text(encoding="utf-8")):
        assert is_found(compile_any(given, vocabulary, close_objects=True, whitespace="compact"))
    assert not is_found(constrain.compile(SCHEMA, vocabulary, whitespace="compact"))
    assert not is_found(compile_any(SCHEMA, vocabulary, close_objects=True))
    monkeypatch.setenv("CONSTRAIN_CACHE", "")
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1


# Types.


class Cat(BaseModel):
    name: str


class Dog(BaseModel):
    name: str


@dataclass
class Bird:
    name: str


class Size(Enum):
    SMALL = "s"


def model(**config: Any) -> Any:
    return create_model("Model", __config__=config, text=(str, ...), number=(int, 1))


PET = '{"name": "a"}'
TYPES: list[tuple[str, list[Any]]] = [
    (PET, [Cat | Dog, Dog | Cat]),
    (PET, [Bird | Cat, Cat | Bird]),
    (f"[{PET}]", [list[Cat | Dog], list[Dog | Cat], tuple[Cat | Dog], tuple[Dog | Cat]]),
    (f'{{"a": {PET}}}', [dict[str, Cat | Dog], dict[str, Dog | Cat]]),
    ('"2024-02-01"', [date | str, str | date]),
    ('"x"', [Literal["x", "y"], Literal["y", "x"]]),
    ("1", [Literal[1, "x"], Literal["x", 1], Literal[1] | bool, Literal[True] | int]),
    ('"s"', [Size | str, str | Size]),
    ("1", [Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1.0)], Annotated[float, Field(ge=True)]]),
    ('{"text": " a "}', [model(), model(str_strip_whitespace=True), model(str_to_upper=True), model()]),
]


@for_each("text, kinds", TYPES)
def test_each_type_reads_a_text_as_if_it_were_the_only_one(text: str, kinds: list[Any]) -> None:
    for kind in (*kinds, *reversed(kinds)):
        adapter = TypeAdapter(kind)
        value, document = adapter.validate_json(text), json.dumps(adapter.json_schema())
        result, reader = result_type(kind), constrain.events.FieldReader(kind)
        reader.feed(text)
        reader.finish()
        for found in (result.parse(text), reader.value):
            assert (type(found), repr(found)) == (type(value), repr(value)), kind
        assert json.dumps(result.document) == document


def test_the_result_type_of_a_model_is_made_once_until_the_model_is_rebuilt() -> None:
    kind = model()
    first = result_type(kind)
    assert result_type(kind) is first
    kind.model_config["str_to_upper"] = True
    kind.model_rebuild(force=True)
    assert first.parse('{"text": "a"}').text == "a"
    assert result_type(kind).parse('{"text": "a"}').text == "A"


# Constraints.

SCHEMAS: list[list[Any]] = [
    [{"const": 1}, {"const": True}, {"const": 1.0}, {"const": "1"}, {"enum": [1, True]}, {"enum": [True, 1]}],
    [{"minimum": 0, "type": "number"}, {"minimum": -0.0, "type": "number"}, {"minimum": 0.0, "type": "number"}],
    [{"properties": {"a": {}, "b": {}}, "required": order} for order in (["a", "b"], ["b", "a"])],
    [{"properties": {name: {} for name in order}, "required": ["a", "b"]} for order in ("ab", "ba")],
    [Literal[1] | bool, bool | Literal[1], Literal[True] | int, Literal[1], Literal[True]],
    [f'{{"type": "number", "multipleOf": {each}}}' for each in ("1", "1.0", "1.5", "1.50")],
    [f'{{"type": "{kind}", "minimum": {each}}}' for kind in ("number", "integer") for each in ("1", "1.0", "1.5")],
    [f'{{"type": "number", "not": {{"const": {each}}}}}' for each in ("1", "1.0", "1.5", "-0.0", "0")],
    [f'{{"items": {{"const": {each}}}}}' for each in ("1", "true", "1.0")],
    [{"pattern": "a$", "type": "string"}, constrain.Regex("a$"), constrain.Regex("a$", "python"), {"const": "a"}],
    [constrain.Regex("a|1$"), constrain.Regex("a|1$", "python"), constrain.Lark("start: /a|1/")],
    [constrain.Lark("start: @a", grammars={"a": each}) for each in ({"const": 1}, {"const": True}, 'start: "1"')],
]
ANSWERS = ["1", "2", "true", "1.0", "1.5", "1.50", "1e0", "-0", "0", '"1"', "a", '"a"', '"\\u0061"', " 1", "[]"]
ANSWERS += ['{"a":1,"b":2}', '{"b":2,"a":1}', '{"a":1,"b":1.0}', "[1,1.0]"]


def forget() -> None:
    """Empties all caches of the package."""
    modules = [module for name, module in [*sys.modules.items()] if name.startswith("constrain.")]
    for value in [value for module in modules for value in vars(module).values()]:
        if isinstance(memory := getattr(value, "memory", None), Memory):
            memory.clear()
        elif hasattr(value, "cache_clear"):
            value.cache_clear()


def require_own(languages: list[tuple[Any, dict[str, Any]]]) -> None:
    """Each language accepts after others what it accepts alone."""

    def answers(language: Any, options: dict[str, Any], vocabulary: constrain.Vocabulary) -> list[bool]:
        constraint = constrain.compile(language, vocabulary, cache=False, **options)
        return [constraint.accepts(answer) for answer in ANSWERS]

    alone = []
    for language, options in languages:
        forget()
        alone.append(answers(language, options, byte_vocabulary()))
    for order in (range(len(alone)), reversed(range(len(alone)))):
        forget()
        shared = byte_vocabulary()
        for number in order:
            language, options = languages[number]
            assert answers(language, options, shared) == alone[number], language


@pytest.mark.slow
@for_each("schemas", SCHEMAS)
def test_each_schema_has_its_own_constraint(schemas: list[Any]) -> None:
    require_own([(schema, {}) for schema in schemas])


@for_each(
    "policy, values",
    ("numbers", ("canonical", "any")),
    ("precision", ("double", "decimal")),
    ("integers", ("64-bit", "any")),
    ("whitespace", ("flexible", "compact", "any")),
    ("escapes", ("canonical", "any")),
    ("property_order", ("schema", "any")),
)
def test_each_policy_has_its_own_constraint(policy: str, values: tuple[str, ...]) -> None:
    members = {"a": {"multipleOf": 0.5}, "b": {"type": "integer"}}
    schema = {"type": ["number", "string", "object", "array"], "properties": members, "uniqueItems": True}
    require_own([(schema, {policy: value}) for value in values])


# Digests.

LARGE = tree.Concatenation(tuple(tree.Repetition(tree.Literal(bytes([byte])), 0, 1) for byte in range(200)))
"""An expression of which printing omits a part."""


def test_each_field_of_a_grammar_is_in_its_digest() -> None:
    def after(text: bytes) -> tree.Expression:
        return tree.Concatenation((LARGE, tree.Literal(text)))

    capture = Capture("a", body=LARGE)
    rule, terminal = Rule("r", (), (), capture=capture), Terminal("t", LARGE)
    grammar = Grammar((terminal,), (rule,))
    found = {grammar_digest(grammar)}
    for old, place in ((capture, "capture"), (rule, "rules"), (terminal, "terminals"), (grammar, "")):
        for field in fields(old):
            for value in (after(b"x"), after(b"y")) if "Expression" in str(field.type) else (("other",),):
                made: Any = replace(old, **{field.name: value})
                made = replace(rule, capture=made) if place == "capture" else made
                whole = replace(grammar, **{"rules" if place == "capture" else place: (made,)}) if place else made
                digest = grammar_digest(whole)
                assert digest not in found, field
                found.add(digest)


@for_each(
    "make",
    constrain.Regex,
    constrain.Lark,
    constrain.Gbnf,
    lambda end: constrain.Lark("start: @a", description="d", grammars={"a": end}),
    lambda end: constrain.parts.StructuralTag({"format": {"type": "const_string", "value": end}}),
    lambda end: constrain.parts.sequence(
        "a", constrain.parts.choice("b", constrain.parts.repeat(constrain.Regex(end)))
    ),
)
def test_sources_that_differ_where_printing_ends_have_different_digests(make: Any) -> None:
    one, same, other = (make("a" * 1_000 + end) for end in "bbc")
    assert repr(one) == repr(other)
    assert source_digest(one) == source_digest(same) != source_digest(other)
