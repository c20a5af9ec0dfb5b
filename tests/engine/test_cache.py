"""Constraints on disk: found again by other processes, never mistaken, never in the way."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import constrain
from constrain import private_folders
from constrain.engine import cache as _cache
from constrain.engine import remembered
from constrain.engine.compiling import compile_any
from constrain.language import tree
from tests.support import Tokens, Walker, demo_vocabulary, small_vocabulary

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
    """Was it restored? Then its grammar has not been made."""
    return made._grammar is None


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


def test_a_kept_constraint_is_found_and_has_the_same_masks() -> None:
    vocabulary = small_vocabulary()
    made = constrain.compile(SCHEMA, vocabulary)
    assert not is_found(made)
    assert made.precompute(max_masks=50).masks == 50
    found = constrain.compile(SCHEMA, small_vocabulary())
    assert is_found(found)
    assert masks(found, vocabulary) == masks(constrain.compile(SCHEMA, vocabulary, cache=False), vocabulary)


def test_a_found_constraint_tells_all_that_a_made_one_does() -> None:
    vocabulary = small_vocabulary()
    schema = {"$id": "http://example.org", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"], "default": 1}
    made = constrain.compile(schema, vocabulary, cache=False)
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


def test_warnings_are_kept() -> None:
    schema = {"type": "string", "exclusiveMinimum": True, "id": "http://example.org"}
    made = constrain.compile(schema, small_vocabulary(), cache=False)
    assert made.warnings
    keep(schema)
    assert constrain.compile(schema, small_vocabulary()).warnings == made.warnings


def test_masks_met_before_keeping_are_kept() -> None:
    vocabulary = small_vocabulary()
    made = constrain.compile(SCHEMA, vocabulary)
    walker = Walker(made, vocabulary)
    walker.prefix(Random(3), 10)
    assert made.precompute(max_masks=0).masks == 0
    found = constrain.compile(SCHEMA, vocabulary)
    before = found._core.stats()["memory_bytes"]
    Walker(found, vocabulary).prefix(Random(3), 10)
    assert found._core.stats()["memory_bytes"] == before


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


def test_closed_objects_are_another_constraint() -> None:
    keep()
    closed = compile_any(SCHEMA, small_vocabulary(), close_objects=True)
    assert not is_found(closed)
    assert not closed.accepts(b'{"name": "x", "more": 1}')


def test_other_schemas_and_vocabularies_are_other_constraints() -> None:
    keep()
    assert not is_found(constrain.compile({"type": "integer"}, small_vocabulary()))
    assert not is_found(constrain.compile(SCHEMA, small_vocabulary(1)))


def grammar(letter: bytes) -> constrain.Grammar:
    builder = constrain.GrammarBuilder()
    deep: tree.Expression = tree.Literal(letter)
    for _ in range(1_500):
        deep = tree.Concatenation((deep, tree.Literal(b"x")))
    word = builder.terminal("word", tree.Alternation((deep, tree.Literal(b"b"))))
    start = builder.rule("start")
    builder.define(start, [[word]])
    return builder.build()


@pytest.mark.slow
def test_grammars_are_kept_too() -> None:
    vocabulary = small_vocabulary()
    file = keep(grammar(b"a"), vocabulary)
    assert keep(grammar(b"a"), vocabulary) == file
    found = constrain.compile(grammar(b"a"), vocabulary)
    assert is_found(found)
    assert found.accepts(b"a" + 1_500 * b"x")
    assert found.grammar.terminals[0].name == "word"
    other = constrain.compile(grammar(b"c"), vocabulary)
    assert not is_found(other)
    assert not other.accepts(b"a" + 1_500 * b"x")


def test_nothing_is_written_unless_asked_for(cache: Path) -> None:
    vocabulary = small_vocabulary()
    made = constrain.compile(SCHEMA, vocabulary)
    masks(made, vocabulary)
    assert not cache.exists()


def test_the_cache_can_be_another_one_or_none(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = small_vocabulary()
    assert constrain.compile(SCHEMA, vocabulary, cache=False).precompute(max_masks=5).file is None
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


def test_registries_are_not_kept() -> None:
    vocabulary = small_vocabulary()
    registry = {"urn:x": {"type": "integer"}}
    made = constrain.compile({"$ref": "urn:x"}, vocabulary, registry=registry)
    assert made.precompute(max_masks=5).file is None


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


@pytest.mark.slow
def test_another_process_has_the_mask_parts(cache: Path) -> None:
    vocabulary = small_vocabulary()
    keep(vocabulary=vocabulary)
    script = "from tests.support import small_vocabulary as v; print(v()._core.memory_bytes)"

    def resident(**environment: str) -> int:
        command = [sys.executable, "-c", script]
        return int(subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment}).stdout)

    assert resident() > resident(CONSTRAIN_CACHE="")
    assert (cache / f"v{_cache.FORMAT}").stat().st_mode & 0o077 == 0


WRITER = """
import sys, json, warnings
import constrain
from random import Random
from tests.support import small_vocabulary
from tests.engine.test_cache import masks
warnings.simplefilter("error")
vocabulary = small_vocabulary()
for number in range(int(sys.argv[1]), int(sys.argv[1]) + 6):
    schema = {"type": "object", "properties": {f"p{number % 4}": {"type": "string"}}, "required": [f"p{number % 4}"]}
    made = constrain.compile(schema, vocabulary)
    assert made.precompute(max_masks=30).file is not None
    fresh = constrain.compile(schema, vocabulary, cache=False)
    assert masks(made, vocabulary) == masks(fresh, vocabulary)
print("done")
"""


@pytest.mark.slow
def test_eight_processes_may_write_at_once(cache: Path) -> None:
    command = [sys.executable, "-c", WRITER]
    writers = [
        subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for number in range(8)
    ]
    for writer in writers:
        out, err = writer.communicate(timeout=120)
        assert (out, err) == (b"done\n", b"")
    (folder,) = (path for path in (cache / f"v{_cache.FORMAT}").iterdir() if path.is_dir())
    assert len(list(folder.iterdir())) == 4 + 1  # and no draft is left
    vocabulary = small_vocabulary()
    for number in range(4):
        schema = {"type": "object", "properties": {f"p{number}": {"type": "string"}}, "required": [f"p{number}"]}
        found = constrain.compile(schema, vocabulary)
        assert is_found(found)
        assert masks(found, vocabulary) == masks(constrain.compile(schema, vocabulary, cache=False), vocabulary)


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
def test_every_truncation_is_noticed() -> None:
    file = keep()
    whole = file.read_bytes()
    vocabulary = small_vocabulary()
    expected = masks(constrain.compile(SCHEMA, vocabulary), vocabulary)
    lengths = {*range(200), *range(len(whole) - 40, len(whole)), *Random(1).sample(range(len(whole)), 100)}
    cached = _cache.find_cache()
    assert cached is not None
    for length in sorted(lengths):
        file.write_bytes(whole[:length])
        with pytest.raises(_cache.RejectedFileError):
            cached.load(vocabulary, key())
    file.write_bytes(whole[:1_000])
    expect_rebuilt(file, "damaged")
    assert masks(constrain.compile(SCHEMA, vocabulary), vocabulary) == expected


@pytest.mark.slow
def test_every_flipped_bit_is_noticed() -> None:
    file = keep()
    whole = bytearray(file.read_bytes())
    vocabulary = small_vocabulary()
    cached = _cache.find_cache()
    assert cached is not None
    assert cached.load(vocabulary, key()) is not None
    rng = Random(2)
    positions = [*range(144), *(rng.randrange(len(whole)) for _ in range(300))]
    for position in positions:
        bit = 1 << rng.randrange(8)
        whole[position] ^= bit
        file.write_bytes(whole)
        with pytest.raises(_cache.RejectedFileError):
            cached.load(vocabulary, key())
        whole[position] ^= bit
    whole[5_000] ^= 1
    file.write_bytes(whole)
    expect_rebuilt(file, "damaged")


def test_a_file_of_another_vocabulary_is_noticed() -> None:
    file = keep()
    other = small_vocabulary(1)
    foreign = keep(vocabulary=other)
    assert foreign.parent != file.parent
    shutil.copy(foreign, file)
    expect_rebuilt(file, "another vocabulary")


def test_a_file_of_another_schema_is_noticed() -> None:
    file = keep()
    shutil.copy(keep({"type": "integer"}), file)
    expect_rebuilt(file, "another schema or grammar")


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


@pytest.mark.parametrize(
    "module",
    [
        "lark/common.py",
        "composition/grammar.py",
        "chat/answers/escapes.py",
        "regex/parsing/parser.py",
        "engine/constraint.py",
    ],
)
def test_an_edit_of_any_module_that_makes_constraints_is_another_build(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "constrain"
    shutil.copytree(Path(_cache.__file__).parents[1], package)
    monkeypatch.setattr(_cache, "__file__", str(package / "engine" / "cache.py"))
    before = _cache.producer.__wrapped__()
    assert before == _cache.producer.__wrapped__()
    (package / "server" / "app.py").write_text("")
    assert before == _cache.producer.__wrapped__()
    with (package / module).open("a") as file:
        file.write("#")
    assert before != _cache.producer.__wrapped__()


def test_a_file_of_another_format_is_noticed() -> None:
    file = keep()
    whole = bytearray(file.read_bytes())
    whole[8] = 0
    file.write_bytes(whole)
    expect_rebuilt(file, "not a file of this format")


@pytest.mark.parametrize("notes", [b'{"policies": 1, "warnings": []}', b"[" * 100_000])
def test_notes_that_cannot_be_read_are_noticed(cache: Path, notes: bytes) -> None:
    """The checksum is right: whoever wrote this was wrong."""
    file = keep()
    vocabulary = small_vocabulary()
    tables = constrain.compile(SCHEMA, vocabulary, cache=False)._packed().tables
    assert _cache.Cache(cache).store(vocabulary, key(), tables, notes + b"\n[]") == file
    expect_rebuilt(file, "the notes on a constraint cannot be read")


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


def test_a_directory_that_others_may_use_is_not_used(cache: Path) -> None:
    keep()
    (cache / f"v{_cache.FORMAT}").chmod(0o755)
    _cache._cache_of.cache_clear()
    expect_not_used("its mode must be 700")


def test_a_directory_in_one_that_others_may_change_is_not_used(cache: Path) -> None:
    keep()
    cache.chmod(0o777)
    _cache._cache_of.cache_clear()
    expect_not_used("others may replace")
    cache.chmod(0o777 | stat.S_ISVTX)  # as /tmp
    _cache._cache_of.cache_clear()
    assert is_found(constrain.compile(SCHEMA, small_vocabulary()))


def test_a_link_is_not_followed(cache: Path, tmp_path: Path) -> None:
    cache.mkdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (cache / f"v{_cache.FORMAT}").symlink_to(tmp_path / "elsewhere")
    expect_not_used("no directory")


def test_a_damaged_seed_is_noticed(cache: Path) -> None:
    keep()
    (cache / f"v{_cache.FORMAT}" / "seed").write_bytes(b"short")
    _cache._cache_of.cache_clear()
    expect_not_used("seed is damaged")


def test_where_nothing_can_be_written_all_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CONSTRAIN_CACHE", str(tmp_path / "file" / "cache"))
    expect_not_used("not used")


def test_a_full_disk_leaves_nothing_behind(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = keep()

    def write(path: Path, *_parts: bytes) -> None:
        path.write_bytes(b"begun")
        raise OSError(28, "No space left on device")

    before = sorted(file.parent.iterdir())
    monkeypatch.setattr(private_folders, "write_new", write)
    made = constrain.compile({"type": "integer"}, small_vocabulary())
    with pytest.warns(RuntimeWarning, match="No space left"):
        assert made.precompute(max_masks=5).file is None
    assert sorted(file.parent.iterdir()) == before
    assert not list((cache / f"v{_cache.FORMAT}").glob("*.tmp"))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("call", ["open", "write", "link", "replace"])
def test_a_file_that_cannot_be_written_fails_no_compilation(
    call: str, code: int, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = keep()
    file.write_bytes(b"damaged")
    before = sorted(cache.rglob("*"))
    _cache._cache_of.cache_clear()
    real_open, real_write = os.open, private_folders.write_new

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(code, os.strerror(code))

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
    assert os.strerror(code) in told[0]
    assert sorted(cache.rglob("*")) == before
    with pytest.warns(RuntimeWarning, match="made anew"):
        constrain.compile(SCHEMA, small_vocabulary())
    assert is_found(constrain.compile(SCHEMA, small_vocabulary()))


def test_too_little_memory_to_write_fails_no_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    keep().write_bytes(b"damaged")
    _cache._cache_of.cache_clear()

    def fail(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(_cache.Cache, "store", fail)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = constrain.compile(SCHEMA, small_vocabulary())
    assert made.accepts(b'{"name": "x"}')
    assert ["too little memory" in str(warning.message) for warning in caught] == [False, True]


def test_a_folder_that_cannot_be_looked_at_is_not_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep()
    _cache._cache_of.cache_clear()
    look = Path.stat

    def fail(path: Path, **options: Any) -> os.stat_result:
        if path == cache:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return look(path, **options)

    monkeypatch.setattr(Path, "stat", fail)
    expect_not_used("Input/output error")


@pytest.mark.slow
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
    for number in range(12):
        os.utime(first, (old, old))
        assert is_found(constrain.compile({"const": "first"}, small_vocabulary()))  # and marked as used
        kept = keep({"const": f"number {number}"})
        os.utime(kept, (old + 1 + number, old + 1 + number))
    total = sum(path.stat().st_size for path in first.parent.iterdir())
    assert total <= _cache.CACHE_BYTES
    assert first.exists(), "what is used stays"
    assert not abandoned.exists()
    assert begun.exists()
    assert is_found(constrain.compile({"const": "number 11"}, small_vocabulary()))
    assert not is_found(constrain.compile({"const": "number 0"}, small_vocabulary()))


def test_a_constraint_larger_than_the_bound_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cache, "CACHE_BYTES", 1_000)
    made = constrain.compile(SCHEMA, small_vocabulary())
    with pytest.warns(RuntimeWarning, match="may hold"):
        assert made.precompute(max_masks=5).file is None


def test_a_file_may_be_removed_or_replaced_while_it_is_in_use() -> None:
    vocabulary = small_vocabulary()
    file = keep(vocabulary=vocabulary)
    found = constrain.compile(SCHEMA, vocabulary)
    keep(vocabulary=vocabulary)
    file.unlink()
    shutil.rmtree(file.parent.parent)
    assert masks(found, vocabulary) == masks(constrain.compile(SCHEMA, vocabulary, cache=False), vocabulary)


@pytest.mark.slow
def test_a_models_vocabulary_is_that_of_its_file() -> None:
    """What ``constrain compile`` keeps is found by ``generate``."""
    from constrain.llama.model import Model

    model = Model()
    assert model.vocabulary.fingerprint == demo_vocabulary().fingerprint
    assert small_vocabulary().fingerprint != small_vocabulary(1).fingerprint


@pytest.mark.slow
@pytest.mark.parametrize("policies", [{}, {"whitespace": "compact", "numbers": "any"}], ids=["default", "other"])
def test_generate_finds_what_the_command_line_kept(policies: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA, indent=1, ensure_ascii=False), encoding="utf-8")
    command = [sys.executable, "-m", "constrain", "compile", "schema.json", "--max-masks", "40"]
    command += [part for name, value in policies.items() for part in (f"--{name}", value)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert all(Path(line).is_file() for line in done.stdout.splitlines())
    vocabulary = demo_vocabulary()
    for given in (SCHEMA, (tmp_path / "schema.json").read_text(encoding="utf-8")):
        found = compile_any(given, vocabulary, close_objects=True, **policies)
        assert is_found(found)
        row = found.allocate_bitmask()[0]
        found.matcher().fill_bitmask(row)
        assert np.any(row)
    assert not is_found(constrain.compile(SCHEMA, vocabulary))
    assert not is_found(compile_any(SCHEMA, vocabulary, close_objects=True, formats="annotation"))


@pytest.mark.slow
def test_the_command_line_says_when_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    command = [sys.executable, "-m", "constrain", "compile", "schema.json", "--max-masks", "1", "--open"]
    full = {**os.environ, "CONSTRAIN_CACHE": ""}
    done = subprocess.run(command, cwd=tmp_path, env=full, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no cache directory" in done.stderr
    command[-2:] = ["1", "--open", "--cache", "kept"]
    done = subprocess.run(command, cwd=tmp_path, env=full, capture_output=True, text=True, check=True)
    assert is_found(constrain.compile(SCHEMA, demo_vocabulary(), cache=tmp_path / "kept"))
