"""What a process keeps on disk, a later one finds; whatever is wrong with a file counts as missing."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import llama_cpp
import numpy as np
import pytest

import constrain
from constrain import private_folders
from constrain.llama.prompt_cache import files
from constrain.llama.prompt_cache.identity import ModelFacts
from constrain.llama.prompt_cache.prompts import MIN_KEPT_TOKENS, WAITING_STATES
from constrain.llama.scheduling.scheduler import Scheduler
from constrain.vocabulary.gguf.files import fingerprint, has_tensor
from tests.support.gguf_files import finish
from tests.support.llama.kept import keep, prompts_in, restored, tokens_of
from tests.support.llama.scripted import Scripted, expected, request, run

TOKENS = tokens_of(300)
WANTED = np.append(TOKENS, [1, 2, 3]).astype(np.intc)


def only_file(directory: Path) -> Path:
    (found,) = (path for path in directory.rglob("*-*-*") if path.is_file())
    return found


def test_a_later_process_restores_the_state(tmp_path: Path) -> None:
    assert restored(tmp_path, WANTED) is None
    keep(tmp_path, TOKENS)
    assert restored(tmp_path, WANTED) == TOKENS.tolist()


def test_files_are_for_the_user_alone(tmp_path: Path) -> None:
    keep(tmp_path, TOKENS)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "prompts-v1").rglob("*")}
    assert set(modes.values()) == {0o600, 0o700}
    assert (tmp_path / "prompts-v1").stat().st_mode & 0o777 == 0o700


def test_the_file_with_most_of_a_prompt_is_found(tmp_path: Path) -> None:
    for length in (260, 300, 280):
        keep(tmp_path, TOKENS[:length])
    keep(tmp_path, np.append(TOKENS[:250], tokens_of(50, 1)).astype(np.intc))
    found = prompts_in(tmp_path)[1].find(WANTED)
    assert found is not None
    assert (len(found.tokens), found.usable) == (300, 300)


def test_a_common_beginning_is_enough(tmp_path: Path) -> None:
    keep(tmp_path, TOKENS)
    other = np.append(TOKENS[:200], tokens_of(90, 1)).astype(np.intc)
    found = prompts_in(tmp_path)[1].find(other)
    assert found is not None
    assert found.usable == 200
    recurrent = prompts_in(tmp_path, one_state=True)[1]
    assert recurrent.find(other) is None
    assert recurrent.find(WANTED) is not None


def test_what_fits_the_model_and_the_context_is_used_but_for_the_last_two_tokens(tmp_path: Path) -> None:
    keep(tmp_path, TOKENS)
    assert prompts_in(tmp_path, n_ctx=299)[1].find(WANTED) is None
    assert prompts_in(tmp_path, identity=bytes(32))[1].find(WANTED) is None
    found = prompts_in(tmp_path)[1].find(TOKENS)
    assert found is not None
    assert found.usable == len(TOKENS) - 2


def test_partitions_do_not_see_each_other(tmp_path: Path) -> None:
    keep(tmp_path, TOKENS, "one")
    assert restored(tmp_path, WANTED, "two") is None
    assert restored(tmp_path, WANTED) is None
    assert restored(tmp_path, WANTED, "one") is not None
    two = prompts_in(tmp_path)[1]
    assert two.end_to_keep(WANTED, 0, lambda: 300, "two") == 300
    assert two.end_to_keep(WANTED, 0, lambda: 300, "one") == 0
    names = " ".join(str(path) for path in tmp_path.rglob("*"))
    assert "one" not in names.replace(str(tmp_path), "")


def test_an_open_process_sees_what_others_write_and_remove(tmp_path: Path) -> None:
    prompts = prompts_in(tmp_path)[1]
    assert prompts.find(WANTED) is None
    keep(tmp_path, TOKENS)
    assert prompts.find(WANTED) is not None
    longer = tokens_of(340)
    assert longer[:300].tolist() == TOKENS.tolist()
    keep(tmp_path, longer)
    found = prompts.find(np.append(longer, [1, 2]).astype(np.intc))
    assert found is not None
    assert found.usable == 340
    for path in tmp_path.rglob("*-*-*"):
        path.unlink()
    assert prompts.restore(found, lambda _: True) is None
    assert prompts.find(WANTED) is None


def test_only_long_beginnings_are_kept(tmp_path: Path) -> None:
    prompts = prompts_in(tmp_path)[1]
    assert prompts.end_to_keep(WANTED, 0, lambda: MIN_KEPT_TOKENS, "") == MIN_KEPT_TOKENS
    assert prompts.end_to_keep(WANTED, 0, lambda: MIN_KEPT_TOKENS - 1, "") == 0
    assert prompts.end_to_keep(WANTED, 100, lambda: 300, "") == 0
    assert prompts.end_to_keep(WANTED, 0, lambda: 10_000, "") == len(WANTED) - 2
    assert prompts.end_to_keep(WANTED, 0, None, "") == 0
    for wanted, known in ((WANTED[:250], 0), (WANTED, 299)):  # short, or known: nothing is counted, which takes time
        assert prompts.end_to_keep(wanted, known, lambda: 1 // 0, "") == 0


def cut(content: bytes) -> bytes:
    return content[:-5]


def cut_in_header(content: bytes) -> bytes:
    return content[:50]


def change(place: int) -> Callable[[bytes], bytes]:
    return lambda content: content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def lengthen(content: bytes) -> bytes:
    return content + b"more"


@pytest.mark.parametrize(
    "damage", [cut, cut_in_header, lengthen, *(change(at) for at in (0, 8, 12, 20, 40, 50, 58, 70, 100, -1))]
)
def test_a_damaged_file_counts_as_missing_and_is_removed(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    keep(tmp_path, TOKENS)
    path = only_file(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(RuntimeWarning, match="was removed") as caught:
        assert restored(tmp_path, WANTED) is None
    assert len(caught) == 1
    assert not path.exists()
    keep(tmp_path, TOKENS)
    assert restored(tmp_path, WANTED) == TOKENS.tolist()


def test_a_file_of_another_model_under_this_name_is_not_used(tmp_path: Path) -> None:
    keep(tmp_path, TOKENS)
    path = only_file(tmp_path)
    files.write_state(path, bytes(32), TOKENS, TOKENS.astype(np.uint8))
    with pytest.warns(RuntimeWarning, match="of another model"):
        assert restored(tmp_path, WANTED) is None


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    keep(tmp_path, TOKENS)
    path = only_file(tmp_path)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(RuntimeWarning, match="not kept"):
        assert restored(tmp_path, WANTED) is None
    assert (tmp_path / "elsewhere").exists()


def test_a_state_that_does_not_fit_is_removed(tmp_path: Path) -> None:
    keep(tmp_path, TOKENS)
    prompts = prompts_in(tmp_path)[1]
    found = prompts.find(WANTED)
    assert found is not None
    with pytest.warns(RuntimeWarning, match="does not fit"):
        now = prompts.restore(found, lambda _: False)
    assert now is not None
    assert len(now) == 0
    assert restored(tmp_path, WANTED) is None


def expect_unused(directory: Path, why: str) -> None:
    """Nothing is kept or found, with one warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cache, prompts = prompts_in(directory)
        for seed in range(3):
            tokens = tokens_of(300, seed)
            assert prompts.find(tokens) is None
            if prompts.end_to_keep(tokens, 0, lambda: 300):
                prompts.keep(tokens, tokens.astype(np.uint8))
            cache.join()
        cache.close()
    assert [why in str(warning.message) for warning in caught] == [True]


def link(directory: Path) -> None:
    shutil.rmtree(directory / "prompts-v1")
    (directory / "elsewhere").mkdir(mode=0o700)
    (directory / "prompts-v1").symlink_to(directory / "elsewhere")


def put_a_file(directory: Path) -> None:
    shutil.rmtree(directory)
    directory.write_text("")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda directory: (directory / "prompts-v1").chmod(0o755), "its mode must be 700"),
        (lambda directory: (directory / "prompts-v1" / "secret").write_bytes(b"short"), "secret is damaged"),
        (link, "no directory"),
        (put_a_file, "not kept"),
    ],
    ids=["others may use it", "a damaged secret", "a link", "a file"],
)
def test_a_folder_that_is_not_one_of_the_user_alone_is_not_used(
    tmp_path: Path, spoil: Callable[[Path], object], why: str
) -> None:
    keep(tmp_path / "cache", TOKENS)
    spoil(tmp_path / "cache")
    expect_unused(tmp_path / "cache", why)


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(tmp_path, tokens_of(300, 9))
    before = sorted(tmp_path.rglob("*"))
    write = private_folders.write_new

    def fail(path: Path, *parts: Any) -> None:
        write(path, *(bytes(part)[:1] for part in parts))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(private_folders, "write_new", fail)
    expect_unused(tmp_path, os.strerror(errno.ENOSPC))
    assert sorted(tmp_path.rglob("*")) == before


def test_least_recently_used_files_make_room(tmp_path: Path) -> None:
    one = files.file_bytes(300, 300)
    prompts, kept = [tokens_of(300, seed) for seed in range(4)], set[Path]()
    for number, tokens in enumerate(prompts[:3]):
        keep(tmp_path, tokens, limit=3 * one)
        for path in set(tmp_path.rglob("*-300-*")) - kept:
            os.utime(path, (1000 + number, 1000 + number))
            kept.add(path)
    assert restored(tmp_path, np.append(prompts[0], [1, 2]).astype(np.intc)) is not None  # used now
    keep(tmp_path, prompts[3], limit=3 * one)
    there = [restored(tmp_path, np.append(tokens, [1, 2]).astype(np.intc)) is not None for tokens in prompts]
    assert there == [True, False, True, True]


def test_an_error_of_the_system_removes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(tmp_path, TOKENS)

    def fail(*_: Any) -> Any:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    map_file = files.map_file
    monkeypatch.setattr(files, "map_file", fail)
    with pytest.warns(RuntimeWarning, match="Too many open files"):
        assert restored(tmp_path, WANTED) is None
    monkeypatch.setattr(files, "map_file", map_file)
    assert restored(tmp_path, WANTED) is not None


def test_a_state_larger_than_the_limit_is_not_kept(tmp_path: Path) -> None:
    keep(tmp_path, TOKENS, limit=1000)
    assert not (tmp_path / "prompts-v1").exists()


def test_folders_without_files_and_abandoned_drafts_go(tmp_path: Path) -> None:
    one = files.file_bytes(300, 300)
    keep(tmp_path, TOKENS, "one")
    draft = only_file(tmp_path).parent / ".abc.tmp"
    draft.write_bytes(b"begun")
    os.utime(draft, (1, 1))
    keep(tmp_path, TOKENS, "two", limit=one)
    assert len([path for path in (tmp_path / "prompts-v1").iterdir() if path.is_dir()]) == 1
    assert not draft.exists()


def test_too_many_waiting_states_are_not_kept(tmp_path: Path) -> None:
    cache, prompts = prompts_in(tmp_path)
    with cache._lock:  # the writer waits
        kept = [cache.has_room()]
    for seed in range(WAITING_STATES + 5):
        cache._waiting.append((str(seed), lambda: None))
        kept.append(cache.has_room())
    assert kept[0] is True
    assert kept[-1] is False
    assert prompts.end_to_keep(WANTED, 0, lambda: 300) == 0
    cache._waiting.clear()
    cache.close()
    assert prompts.end_to_keep(WANTED, 0, lambda: 300) == 0


WRITER = """
import sys
from pathlib import Path
import numpy as np
from tests.support.llama.kept import keep, restored, tokens_of
for turn in range(4):
    for seed in range(4):
        tokens = tokens_of(300, seed)
        keep(Path(sys.argv[1]), tokens, limit=6000)
        found = restored(Path(sys.argv[1]), np.append(tokens, [1, 2]).astype(np.intc))
        assert found in (None, tokens.tolist())
"""


@pytest.mark.slow
def test_several_processes_write_and_read_at_once(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, root]), "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    processes = [subprocess.Popen(command, env=environment) for _ in range(3)]
    assert [process.wait(120) for process in processes] == [0, 0, 0]
    assert not list(tmp_path.rglob("*.tmp"))
    assert sum(path.stat().st_size for path in tmp_path.rglob("*-*-*") if path.is_file()) <= 6000


def write(path: Path, *, name: str = "a", changed: int | None = None, tensor: str = "two") -> Path:
    """A file with two tensors of 10,000 numbers, one of which may be changed."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(name)
    numbers = np.arange(10_000, dtype=np.float32)
    if changed is not None:
        numbers[changed] = -1
    writer.add_tensor("one", np.ones(10_000, np.float32))
    writer.add_tensor(tensor, numbers)
    finish(writer)
    return path


def test_weights_and_metadata_tell_models_apart_and_names_of_files_do_not(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / "a.gguf"),
        write(tmp_path / "b.gguf"),
        write(tmp_path / "c.gguf", name="c"),
        *(write(tmp_path / f"{place}.gguf", changed=place) for place in (0, 5001, 9999)),
        write(tmp_path / "d.gguf", tensor="rope_factors_long.weight"),
    ]
    found = [fingerprint(path) for path in paths]
    assert found[0] == found[1]
    assert len(set(found)) == len(paths) - 1
    assert [has_tensor(path, "rope_factors_long") for path in paths] == [False] * 6 + [True]


def test_all_parts_of_a_split_model_count(tmp_path: Path) -> None:
    first = write(tmp_path / "m-00001-of-00002.gguf")
    second = write(tmp_path / "m-00002-of-00002.gguf")
    before = fingerprint(first)
    write(second, changed=0)
    assert fingerprint(first) != before


def facts_of(model: constrain.Model, **changes: int) -> bytes:
    parameters = llama_cpp.llama_context_params.from_buffer_copy(model.llama.context_params)
    for name, value in changes.items():
        setattr(parameters, name, value)
    return ModelFacts(model.llama).identity(parameters, 1, model.n_ctx)


def test_what_changes_a_state_changes_the_identity(model: constrain.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = facts_of(model)
    assert facts_of(model, n_ctx=77, n_threads=3, n_batch=64) == plain
    changes = [{"type_k": 8}, {"type_v": 8}, {"flash_attn_type": 1}, {"rope_freq_base": 5}, {"swa_full": 0}]
    found = [facts_of(model, **change) for change in changes]
    facts = ModelFacts(model.llama)
    found.append(facts.identity(model.llama.context_params, 4, model.n_ctx))
    monkeypatch.setattr(llama_cpp, "llama_print_system_info", lambda: b"another processor")
    found.append(facts_of(model))
    monkeypatch.setattr(llama_cpp, "__version__", "9.9")
    found.append(facts_of(model))
    assert len({plain, *found}) == len(found) + 1


def test_a_file_that_was_replaced_after_loading_has_no_identity(tmp_path: Path, model: constrain.Model) -> None:
    facts = ModelFacts(model.llama)
    facts._files = [write(tmp_path / "a.gguf")]
    with pytest.raises(constrain.ModelError, match="no longer the file"):
        facts.identity(model.llama.context_params, 1, 64)


SHARED = [(7 * place * place + place) % 29 for place in range(300)]


def ask(directory: Path, *prompts: list[int], model: Scripted | None = None, **options: Any) -> list[Any]:
    """Answers of a new process; requests with the tokens that each had in its slot."""
    model = model or Scripted()
    cache, kept = prompts_in(directory, one_state=model.one_state)
    scheduler = Scheduler(model, prompts=kept)
    requests = [request(prompt, **{"shared": lambda: len(SHARED), **options}) for prompt in prompts]
    run(scheduler, *requests)
    assert [each.answer.tokens for each in requests] == list(map(expected, prompts))
    scheduler.close()
    cache.close()
    return requests


@pytest.mark.parametrize("one_state", [False, True])
def test_a_later_process_begins_where_an_earlier_one_was(one_state: bool, tmp_path: Path) -> None:
    (first,) = ask(tmp_path, [*SHARED, 1, 2, 3], model=Scripted(one_state=one_state))
    assert first.cached_tokens == 0
    (second,) = ask(tmp_path, [*SHARED, 4, 5, 6, 7], model=(model := Scripted(one_state=one_state)))
    assert second.cached_tokens == 300
    assert model.evaluated < 30


def test_the_evaluation_stops_where_the_state_is_kept(tmp_path: Path) -> None:
    ask(tmp_path, [*SHARED, 1, 2, 3], model=(model := Scripted()))
    assert (0, 300, 3) in [piece for batch in model.batches for piece in batch]
    assert model.evaluated == 303 + 19


def test_requests_at_once_restore_once_and_keep_once(tmp_path: Path) -> None:
    prompts = [[*SHARED, number, 2, 3] for number in range(4)]
    ask(tmp_path, *prompts)
    assert len([path for path in tmp_path.rglob("*-*-*") if path.is_file()]) == 1
    requests = ask(tmp_path, *prompts, model=(model := Scripted()))
    assert [each.cached_tokens for each in requests] == [300] * 4
    assert model.evaluated < 4 * 25


def test_a_state_that_the_model_does_not_take_is_evaluated_again(tmp_path: Path) -> None:
    ask(tmp_path, [*SHARED, 1, 2, 3])
    model = Scripted()
    model.forgets = True
    with pytest.warns(RuntimeWarning, match="does not fit"):
        (again,) = ask(tmp_path, [*SHARED, 1, 2, 3], model=model)
    assert again.cached_tokens == 0


def test_no_token_is_evaluated_alone_within_a_prompt(tmp_path: Path) -> None:
    for length in range(254, 262):
        model = Scripted(n_batch=128)
        ask(tmp_path / str(length), SHARED[:length], model=model, shared=lambda: 0)
        pieces = [piece for batch in model.batches for piece in batch if piece[1] < length]
        assert min(count for _, _, count in pieces) > 1


def test_memory_comes_before_the_disk(tmp_path: Path) -> None:
    model = Scripted()
    cache, kept = prompts_in(tmp_path)
    scheduler = Scheduler(model, prompts=kept)
    restored: list[int] = []
    take = model.restore

    def restore(sequence: int, state: np.ndarray[Any, np.dtype[np.uint8]]) -> bool:
        restored.append(len(state))
        return take(sequence, state)

    model.restore = restore  # type: ignore[method-assign]
    for number in range(3):
        run(scheduler, request([*SHARED, number, 2, 3], shared=lambda: 300))
    scheduler.close()
    cache.close()
    assert restored == []
