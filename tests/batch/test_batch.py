"""Files of prompts and answers, without a model: interruptions, lines that cannot be answered, outputs that go on."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain.batch.files import BatchFiles, check_locations, note_path
from constrain.batch.inputs import JsonLines
from constrain.batch.lines import LineError, Task, read_lines, read_task
from constrain.batch.run import Progress, run
from constrain.chat.reading.reply import Refusal, Reply
from constrain.errors import BudgetError, UnsupportedSchemaError
from constrain.generation.completion import Completion
from constrain.language.policies import CHOICES
from constrain.llama.decoding.token_logprob import TokenLogprob
from tests.support import byte_vocabulary, each_row
from tests.support.batch_files import SETTINGS, Batch, cases, completion, echo, prompts, records, statuses_of

# Lines of the input


def test_an_answer_says_which_line_it_belongs_to(tmp_path: Path) -> None:
    batch = Batch(tmp_path, b'{"prompt": "a", "id": "first"}\n"b"\n{"messages": [{"role": "user", "content": "c"}]}\n')
    assert [each.answered for each in batch.run()] == [0, 1, 2, 3]
    found = {each["line"]: each for each in records(batch.output)}
    usage = {
        "prompt_tokens": 3, "cached_tokens": 1, "completion_tokens": 2, "draft_tokens": 0, "introduced_tokens": 0
    }  # fmt: skip
    assert found[1] == {
        "line": 1, "id": "first", "value": "a", "text": '"a"', "finish_reason": "stop", "usage": usage
    }  # fmt: skip
    assert "id" not in found[2]
    assert found[3]["value"] == [{"role": "user", "content": "c"}]
    assert not batch.errors.exists()


@pytest.mark.parametrize(
    "content",
    [b'"a"\n"b"\n', b'"a"\n"b"', b'"a"\r\n"b"\r\n', b'\xef\xbb\xbf"a"\r\n"b"', b' "a"\t\n "b" \n\n \r\n'],
    ids=["line feeds", "no last line feed", "carriage returns", "byte order mark", "blanks"],
)
def test_ends_of_lines(content: bytes, tmp_path: Path) -> None:
    batch = Batch(tmp_path, content)
    batch.run()
    assert batch.values() == {1: "a", 2: "b"}


def test_progress_is_told_while_no_answer_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constrain.batch.run._TICK_SECONDS", 0.001)
    told = threading.Event()

    def answer(task: Task, stop: Future[None]) -> Completion:
        assert told.wait(60)
        return echo(task, stop)

    batch = Batch(tmp_path, b'"a"\n{\n')
    with BatchFiles(batch.output, batch.errors, SETTINGS, restart=False) as files:
        progress = run(JsonLines(batch.prompts), files, answer, None, {}, threads=2)
        found = []
        for each in progress:
            found.append(each)
            if each.failed and each.failure is None:
                told.set()
    assert [each.failure is None for each in found].count(False) == 1, "a failure is told once"
    assert found[-1].answered == 1


def test_blank_lines_are_numbered_but_not_answered(tmp_path: Path) -> None:
    batch = Batch(tmp_path, b'\n"a"\n\n\n"b"\n')
    batch.run()
    assert batch.values() == {2: "a", 5: "b"}


def test_separators_of_unicode_are_part_of_a_line(tmp_path: Path) -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    batch = Batch(tmp_path, json.dumps(text[:7], ensure_ascii=False).encode() + b"\n" + json.dumps(text).encode())
    batch.run()
    assert batch.values() == {1: text[:7], 2: text}
    # whoever takes these for ends of lines finds whole lines, too
    assert {json.loads(line)["line"] for line in batch.output.read_text("utf-8").splitlines()} == {1, 2}


def test_texts_are_written_as_they_are_where_that_is_possible(tmp_path: Path) -> None:
    batch = Batch(tmp_path, json.dumps("é\u2603\ud800").encode())
    batch.run()
    assert "é\u2603\\ud800".encode() in batch.output.read_bytes()
    assert batch.values() == {1: "é\u2603\ud800"}


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_a_file_without_prompts_has_no_answers(content: bytes, tmp_path: Path) -> None:
    batch = Batch(tmp_path, content)
    assert batch.run() == [Progress(0)]
    assert batch.output.read_bytes() == b""
    assert not batch.errors.exists()


WRONG_LINES = {
    b'"\xff"': "not UTF-8",
    b'\xff\xfe"\x00': "not UTF-8",
    b"[" * 100_000: "not readable JSON",
    b"1" * 5_000: "not readable JSON",
    **{case["text"].encode(): case["message"] for case in cases("wrong_lines")},
}


@pytest.mark.parametrize("line", WRONG_LINES, ids=[line[:40] for line in WRONG_LINES])
def test_a_wrong_line_is_reported_with_its_number(line: bytes, tmp_path: Path) -> None:
    batch = Batch(tmp_path, b'"a"\n' + line + b'\n"b"\n')
    last = batch.run(threads=1)[-1]
    assert (last.answered, last.failed) == (2, 1)
    assert batch.values() == {1: "a", 3: "b"}
    [error] = records(batch.errors)
    assert (error["line"], error["error"]) == (2, "LineError")
    assert WRONG_LINES[line] in error["message"]


def test_a_wrong_line_is_reported_with_its_id(tmp_path: Path) -> None:
    batch = Batch(tmp_path, b'{"prompt": "a", "id": "x", "seed": "1"}\n{"id": 7}\n')
    assert [each.failure and each.failure[:7] for each in batch.run(threads=1)] == [None, "line 1:", "line 2:"]
    assert {each["line"]: each["id"] for each in records(batch.errors)} == {1: "x", 2: 7}


def test_what_a_line_says_overrides_what_is_said_for_all() -> None:
    defaults: Any = {"temperature": 0.8, "max_tokens": 9, "seed": 5}
    line = b'{"prompt": "a", "schema": {"const": 1}, "temperature": 0, "logit_bias": {"3": -1.5}, "stop": ["x"]}'
    task = read_task(4, line, '{"const": 2}', defaults)
    assert task.schema == {"const": 1}
    assert task.options == {"temperature": 0, "max_tokens": 9, "seed": 8, "logit_bias": {3: -1.5}, "stop": ["x"]}
    plain = read_task(1, b'"a"', '{"const": 2}', defaults)
    assert (plain.schema, plain.options) == ('{"const": 2}', defaults)
    assert read_task(1, b'{"prompt": "a", "schema": null}', '{"const": 2}', defaults).schema is None
    assert read_task(9, b'{"prompt": "a", "seed": 3}', None, defaults).options["seed"] == 3
    assert read_task(9, b'{"prompt": "a", "seed": null}', None, defaults).options["seed"] is None


def test_a_line_can_have_a_vote() -> None:
    def voters(line: bytes, given: int | None = None) -> int | None:
        return read_task(1, line, None, {}, given).voters

    assert voters(b'"a"') is None
    assert voters(b'"a"', 5) == 5
    assert voters(b'{"prompt": "a", "n": 3, "vote": true}') == 3
    assert voters(b'{"prompt": "a", "n": 3}', 5) == 3
    assert voters(b'{"prompt": "a", "vote": true}', 5) == 5
    assert voters(b'{"prompt": "a", "vote": false}', 5) is None
    assert voters(b'{"prompt": "a", "n": 1, "vote": null}') is None


def test_seeds_of_voters_are_their_own() -> None:
    assert [read_task(n, b'"a"', None, {"seed": 5}, 3).options["seed"] for n in (1, 2, 3)] == [5, 8, 11]


def test_an_answer_has_its_agreement(tmp_path: Path) -> None:
    batch = Batch(tmp_path, b'"a"')
    batch.run(lambda task, _: replace(completion(task.prompt), agreement={(): 0.5, ("a/b", 0): 1}))
    (record,) = records(batch.output)
    assert record["agreement"] == {"": 0.5, "/a~1b/0": 1}


def test_policies_are_for_the_tools_of_a_line_without_schema() -> None:
    policies: Any = {"whitespace": "compact", "strict": True}
    line = b'{"prompt": "a", "schema": null, "tools": [{"type": "function", "name": "f"}]}'
    options = read_task(1, line, '{"const": 2}', policies).options
    assert options == {"whitespace": "compact", "tools": [{"type": "function", "name": "f"}]}
    assert read_task(1, b'{"prompt": "a", "schema": null}', '{"const": 2}', policies).options == {}


def test_a_line_may_name_every_policy() -> None:
    policies = {policy: choices[-1] for policy, choices in CHOICES.items()}
    line = json.dumps({"prompt": "a", "schema": True, **policies}).encode()
    assert read_task(1, line, None, {}).options == policies


def test_seeds_follow_the_number_of_the_line() -> None:
    most = 2**32 - 2
    assert [read_task(line, b'"a"', None, {"seed": most}).options["seed"] for line in (1, 2)] == [most, 0]


def test_ids_need_not_differ(tmp_path: Path) -> None:
    batch = Batch(tmp_path, b'{"prompt": "a", "id": "x"}\n{"prompt": "b", "id": "x"}\n')
    batch.run()
    assert batch.values() == {1: "a", 2: "b"}
    assert [each["id"] for each in records(batch.output)] == ["x", "x"]


def test_input_is_read_as_it_is_needed(tmp_path: Path) -> None:
    batch = Batch(tmp_path, prompts(1_000))
    reader = read_lines(batch.prompts)
    begun: list[int] = []

    def answer(task: Task, _: Future[None]) -> Completion:
        begun.append(task.line)
        return completion(0)

    with BatchFiles(batch.output, batch.errors, SETTINGS, restart=False) as files:
        progress = run(JsonLines(batch.prompts), files, answer, None, {}, threads=2)
        next(progress)
        next(progress)
        progress.close()
    assert next(reader) == (1, b'{"prompt": "p1"}')
    assert len(begun) <= 4


# What cannot be answered


def test_tasks_that_fail_are_skipped_and_tried_again(tmp_path: Path) -> None:
    def picky(task: Task, stop: Future[None]) -> Completion:
        if task.prompt == "p2":
            raise UnsupportedSchemaError("no", pointer="/pattern")
        if task.prompt == "p3":
            raise BudgetError("too few", needed=7)
        if task.prompt == "p4":
            raise LineError("bad role")
        return echo(task, stop)

    batch = Batch(tmp_path, prompts(5))
    assert batch.run(picky)[-1].failed == 3
    assert sorted(records(batch.errors), key=lambda each: each["line"]) == [
        {"line": 2, "error": "UnsupportedSchemaError", "message": "no", "pointer": "/pattern"},
        {"line": 3, "error": "BudgetError", "message": "too few"},
        {"line": 4, "error": "LineError", "message": "bad role"},
    ]
    assert batch.run(picky)[-1].failed == 3
    assert len(records(batch.errors)) == 3
    last = batch.run()[-1]
    assert (last.known, last.answered, last.failed) == (2, 3, 0)
    assert batch.values() == {number: f"p{number}" for number in range(1, 6)}
    assert not batch.errors.exists()


def test_any_other_error_ends_the_batch_and_the_rest_is_answered_next_time(tmp_path: Path) -> None:
    begun = threading.Barrier(2, timeout=60)

    def broken(task: Task, stop: Future[None]) -> Completion:
        if task.line == 2:
            begun.wait()
            raise MemoryError
        if task.line == 3:
            begun.wait()
            stop.result(60)  # told to give up
        return echo(task, stop)

    batch = Batch(tmp_path, prompts(20))
    with pytest.raises(MemoryError):
        batch.run(broken, threads=2)
    written = batch.values()
    assert 1 in written
    assert 2 not in written
    batch.run()
    assert batch.values() == {number: f"p{number}" for number in range(1, 21)}


def test_an_error_loses_no_answer_that_is_known(tmp_path: Path) -> None:
    first_written = threading.Event()
    ended = threading.Semaphore(0)

    def broken(task: Task, _: Future[None]) -> Completion:
        if task.line == 1:
            return completion("p1")
        try:
            assert first_written.wait(60)
            if task.line < 6:
                raise MemoryError
            return completion(task.prompt)
        finally:
            ended.release()

    batch = Batch(tmp_path, prompts(9))
    with BatchFiles(batch.output, batch.errors, SETTINGS, restart=False) as files:
        progress = run(JsonLines(batch.prompts), files, broken, None, {}, threads=9)
        assert [next(progress).answered for _ in range(2)] == [0, 1]
        first_written.set()
        for _ in range(8):
            assert ended.acquire(timeout=60)
        time.sleep(0.2)  # the threads have told their answers
        with pytest.raises(MemoryError):
            list(progress)
    assert batch.values() == {number: f"p{number}" for number in (1, 6, 7, 8, 9)}


@pytest.mark.parametrize("breaks", ["reading", "tick", "interrupt"])
def test_answers_that_are_known_are_written_before_the_batch_ends(
    breaks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = threading.Semaphore(0)
    batch = Batch(tmp_path, prompts(8))

    def slow(task: Task, _: Future[None]) -> Completion:
        try:
            return completion(task.prompt)
        finally:
            answered.release()

    def broken() -> None:
        for _ in range(4):
            assert answered.acquire(timeout=60)
        time.sleep(0.2)  # the threads have told their answers
        raise KeyboardInterrupt if breaks == "interrupt" else OSError("the store is gone")

    class Input(JsonLines):
        def read(self) -> Iterator[tuple[int, bytes]]:
            for number, line in super().read():
                if number == 5 and breaks == "reading":
                    broken()
                yield number, line

    with BatchFiles(batch.output, batch.errors, SETTINGS, restart=False) as files:
        if breaks != "reading":
            monkeypatch.setattr(files, "flush_due", broken)
        with pytest.raises((OSError, KeyboardInterrupt)):
            list(run(Input(batch.prompts), files, slow, None, {}, threads=4))
    assert batch.values().items() >= {number: f"p{number}" for number in range(1, 5)}.items()


# What is written


def test_log_probabilities_are_written_as_json(tmp_path: Path) -> None:
    told = TokenLogprob(5, "a", b"a", -0.5, (TokenLogprob(6, "\\xe2", b"\xe2", -0.25),))

    def answer(task: Task, stop: Future[None]) -> Completion:
        assert (task.options["logprobs"], task.options["top_logprobs"]) == (True, 1)
        return replace(echo(task, stop), text_logprobs=(told,))

    batch = Batch(tmp_path, b'{"prompt": "a", "logprobs": true, "top_logprobs": 1}')
    batch.run(answer)
    [written] = records(batch.output)
    top = [{"token": "\\xe2", "logprob": -0.25, "bytes": [0xE2]}]
    assert written["logprobs"] == [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": top}]


@each_row(
    "value, written",
    (Refusal("No."), {"refusal": "No."}),
    (Reply(refusal="No."), {"content": None, "calls": [], "refusal": "No."}),
    (Reply(content={"a": 1}, text='{"a": 1}'), {"content": {"a": 1}, "calls": []}),
)
def test_replies_and_refusals_are_written_as_json(value: object, written: object, tmp_path: Path) -> None:
    def answer(task: Task, stop: Future[None]) -> Completion:
        return replace(echo(task, stop), value=value, reasoning="Hm.")

    batch = Batch(tmp_path, prompts(1))
    batch.run(answer)
    assert batch.values() == {1: written}
    assert records(batch.output)[0]["reasoning"] == "Hm."


# Interruptions

KILLED = """
import os, signal
from pathlib import Path
from constrain.batch import files
from tests.support.batch_files import Batch, echo

append = files._append

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

class Torn:
    def __init__(self, file):
        self.file, self.name = file, file.name
    def fileno(self):
        return self.file.fileno()
    def write(self, data):
        self.file.write(data[: len(data) // 2])
        kill()

def work(folder, moment, number):
    batch = Batch.__new__(Batch)
    names = ("in.jsonl", "out.jsonl", "errors.jsonl")
    batch.prompts, batch.output, batch.errors = (Path(folder) / name for name in names)
    calls, written = [], []

    def answer(task, stop):
        calls.append(task)
        if moment == "answer" and len(calls) == int(number):
            kill()
        return echo(task, stop)

    def write(file, record):
        written.append(record)
        if moment == "line" and len(written) == int(number):
            append(Torn(file), record)
        append(file, record)
        if moment == "written" and len(written) == int(number):
            kill()

    files._append = write
    batch.run(answer)
"""


@pytest.mark.slow
def test_no_line_is_lost_or_doubled_when_killed(tmp_path: Path) -> None:
    count = 25
    batches = {}
    for moment in ("answer", "line", "written"):
        (tmp_path / moment).mkdir()
        batches[moment] = Batch(tmp_path / moment, prompts(count - 1) + b"wrong\n")
    runs = [[str(tmp_path / moment), moment, number] for moment in batches for number in ("1", "2", "9")]
    assert statuses_of(KILLED, runs) == [-signal.SIGKILL] * 9
    for moment, batch in batches.items():
        before = batch.output.read_bytes()
        batch.run()
        whole = before[: before.rfind(b"\n") + 1]
        assert (whole == before) == (moment != "line")
        assert batch.output.read_bytes().startswith(whole)
        assert batch.values() == {number: f"p{number}" for number in range(1, count)}
        assert [error["line"] for error in records(batch.errors)] == [count]


FULL = """
import resource
from pathlib import Path
from tests.support.batch_files import Batch, prompts

def work(folder):
    batch = Batch(Path(folder), prompts(20))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))
    try:
        batch.run()
    except OSError as error:
        assert "out.jsonl: a line was not written whole" in str(error)
"""


@pytest.mark.slow
def test_a_full_disk_ends_the_batch_and_loses_nothing(tmp_path: Path) -> None:
    assert statuses_of(FULL, [[str(tmp_path)]]) == [0]
    written = (tmp_path / "out.jsonl").read_bytes()
    assert 0 < len(written) <= 1_000
    assert written.endswith(b"\n")  # no half of a line
    batch = Batch(tmp_path, prompts(20))
    assert batch.run()[-1].known > 0
    assert batch.values() == {number: f"p{number}" for number in range(1, 21)}


@pytest.mark.parametrize("left", [1, 10, -1])
def test_a_torn_last_line_is_cut_off(left: int, tmp_path: Path) -> None:
    batch = Batch(tmp_path, prompts(3))
    batch.run(threads=1)
    content = batch.output.read_bytes()
    last = content[:-1].rfind(b"\n") + 1
    batch.output.write_bytes(content[: last + left] if left > 0 else content[:left])
    assert batch.run()[-1].known == 2
    assert batch.output.read_bytes() == content


def test_what_is_complete_is_left_as_it_is(tmp_path: Path) -> None:
    batch = Batch(tmp_path, prompts(3))
    batch.run()
    content = batch.output.read_bytes()
    assert batch.run() == [Progress(3)]
    assert batch.output.read_bytes() == content


# Outputs of something else


@each_row(
    "settings, message",
    ({**SETTINGS, "input": {"sha256": "01"}}, "made with another input; "),
    ({**SETTINGS, "seed": 2}, r"made with another seed \(it was 1\); "),
    ({**SETTINGS, "seed": None, "input": {}}, r"another input, another seed \(it was 1\); "),
    ({"input": {"sha256": "00"}}, r"another seed \(it was 1\)"),
    ({**SETTINGS, "ctx": 5}, r"another ctx \(it was not given\)"),
)
def test_answers_from_other_settings_are_not_mixed(settings: dict[str, object], message: str, tmp_path: Path) -> None:
    batch = Batch(tmp_path, prompts(2))
    batch.run()
    content = batch.output.read_bytes()
    with pytest.raises(ValueError, match=message):
        batch.run(settings=settings)
    assert batch.output.read_bytes() == content
    assert batch.run(settings=settings, restart=True)[-1] == Progress(0, 2)
    assert batch.run(settings=settings) == [Progress(2)]


def test_an_output_that_nobody_knows_is_left_alone(tmp_path: Path) -> None:
    batch = Batch(tmp_path, prompts(2))
    batch.output.write_text("mine\n")
    for note in (None, "{", "[]"):
        if note is not None:
            note_path(batch.output).write_text(note)
        with pytest.raises(ValueError, match="--restart"):
            batch.run()
    assert batch.output.read_text() == "mine\n"


@each_row(
    "line, message",
    (b"{}\n", "line 2 of .* is not an answer"),
    (b"{\n", "line 2 of .* is not an answer"),
    (b"7\n", "line 2 of .* is not an answer"),
    (b'{"line": 1}\n', "line 2 of .* answers line 1 a second time"),
)
def test_an_output_that_was_changed_is_refused(line: bytes, message: str, tmp_path: Path) -> None:
    batch = Batch(tmp_path, prompts(1))
    batch.run()
    with batch.output.open("ab") as file:
        file.write(line)
    with pytest.raises(ValueError, match=message):
        batch.run()


def test_an_output_without_answers_may_be_begun_with_other_settings(tmp_path: Path) -> None:
    batch = Batch(tmp_path, b"")
    batch.run()
    batch.prompts.write_bytes(prompts(1))
    assert batch.run(settings={**SETTINGS, "input": {}})[-1] == Progress(0, 1)


def test_one_process_writes_an_output_at_a_time(tmp_path: Path) -> None:
    batch = Batch(tmp_path, prompts(1))
    with (
        BatchFiles(batch.output, batch.errors, SETTINGS, restart=False),
        pytest.raises(ValueError, match="another process is writing"),
    ):
        batch.run(restart=True)
    assert batch.run()[-1] == Progress(0, 1)


@pytest.mark.parametrize("keeps", [True, False])
def test_errors_may_be_kept_when_files_are_opened_again(keeps: bool, tmp_path: Path) -> None:
    batch = Batch(tmp_path, prompts(3))
    with BatchFiles(batch.output, batch.errors, SETTINGS, restart=False) as files:
        files.error({"line": 2})
    with batch.errors.open("ab") as file:
        file.write(b'{"line": 3')
    with BatchFiles(batch.output, batch.errors, SETTINGS, restart=False, keeps_errors=keeps) as files:
        assert files.failed == ({2} if keeps else set())
        files.error({"line": 1})
    assert [each["line"] for each in records(batch.errors)] == ([2, 1] if keeps else [1])


def test_one_process_writes_a_file_of_errors_at_a_time(tmp_path: Path) -> None:
    batch = Batch(tmp_path, prompts(1))
    with BatchFiles(tmp_path / "other.jsonl", batch.errors, SETTINGS, restart=False) as files:
        files.error({"line": 1, "error": "LineError"})
        with pytest.raises(ValueError, match=r"another process is writing .*errors\.jsonl"):
            batch.run()
    assert [each["line"] for each in records(batch.errors)] == [1]


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("failed", [False, True])
def test_a_file_of_errors_may_be_moved_meanwhile(replaced: bool, failed: bool, tmp_path: Path) -> None:
    batch = Batch(tmp_path, prompts(1))
    moved = tmp_path / "moved.jsonl"
    with BatchFiles(batch.output, batch.errors, SETTINGS, restart=False) as files:
        batch.errors.rename(moved)
        if replaced:
            batch.errors.touch()
        if failed:
            files.error({"line": 1})
        assert len([*files.errors.read()]) == failed
    assert batch.errors.exists() == replaced
    assert moved.exists()


def test_files_have_one_purpose_each(tmp_path: Path) -> None:
    names = {name: tmp_path / name for name in ("in", "out", "errors", "schema", "model")}
    for name in ("in", "schema", "model"):
        names[name].write_text("")
    given, written, read = (
        names["in"],
        (names["out"], note_path(names["out"]), names["errors"]),
        [names["schema"], names["model"]],
    )
    check_locations(given, written, read=read)
    for wrong in (
        (given, names["errors"]),
        (names["out"], tmp_path / "x" / ".." / "in"),
        (names["out"], names["out"]),
        (names["model"], names["errors"]),
        (names["out"], note_path(names["out"]), note_path(names["out"])),
    ):
        with pytest.raises(ValueError, match="two purposes"):
            check_locations(given, wrong, read=read)
    for wrong_input in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ValueError, match=r"not a file|no such file"):
            check_locations(wrong_input, written, read=read)
    with pytest.raises(ValueError, match="not a file"):
        check_locations(given, (tmp_path, names["errors"]), read=read)


def test_warnings_of_schemas_are_told_once(tmp_path: Path) -> None:
    reports = {
        name: constrain.compile({"type": "string", name: 1}, byte_vocabulary(), cache=False).report for name in "xyz"
    }
    assert all(report.warnings for report in reports.values())

    def answer(task: Task, _: Future[None]) -> Completion:
        return replace(completion(task.prompt), report=reports.get(str(task.prompt)))

    batch = Batch(tmp_path, b'"x"\n"none"\n"y"\n"x"\n{\n"y"\n')
    told = [warning for each in batch.run(answer, threads=1) for warning in each.warnings]
    assert sorted(told) == sorted(reports["x"].warnings + reports["y"].warnings)


LONGEST = 10
MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
@pytest.mark.parametrize("mark", [b"", MARK])
@pytest.mark.parametrize("length", [1, LONGEST - 1, LONGEST, LONGEST + 1, LONGEST + 2, 50, 3 << 20])
def test_as_many_bytes_as_allowed_are_no_more_than_allowed(
    length: int, mark: bytes, end: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    path.write_bytes(mark + b"x" * length + (end + b"next" + end if end else b""))
    lines = list(read_lines(path, LONGEST))
    assert lines[0] == (1, b"x" * min(length, LONGEST + 1))
    assert lines[1:] == ([(2, b"next")] if end else [])


def test_without_a_limit_lines_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"x" * 100_000 + b"\n")
    assert list(read_lines(path)) == [(1, b"x" * 100_000)]
