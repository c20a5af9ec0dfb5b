"""The command line, as a program of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import constrain.cli.shared
from constrain.cli.program import app
from tests.support import demo_model
from tests.support.command_line import run, run_on_terminal
from tests.support.judging import require_valid

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("generate", "generate [OPTIONS] PROMPT "),
        ("explain", "explain [OPTIONS] [TEXT] "),
        ("check", "check [OPTIONS] [SCHEMA]... "),
        ("verify", "verify [OPTIONS] FILES... "),
    ],
)
def test_usage_names_arguments_in_capitals(command: str, usage: str) -> None:
    assert usage in CliRunner().invoke(app, [command, "--help"]).stdout


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA))
    return path


@pytest.mark.parametrize("command", [("generate", "Who is it?"), ("batch", "in.jsonl", "-o", "out.jsonl")])
def test_words_without_quotation_marks_are_told_the_cure(command: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*command, "--schema", "name", "str", "age"], env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert "unexpected arguments: str age; quotation marks keep the words of one argument together" in done.stderr


def test_generate_prints_json_and_nothing_else(schema: Path) -> None:
    done = run(
        "generate", "Make up a person.", "--schema", schema, "--seed", "1", "--max-tokens", "60", "--threads", "1"
    )
    assert (done.returncode, done.stderr) == (0, "")
    require_valid(SCHEMA, done.stdout)
    piped = "\ufeffMake up a person."  # as PowerShell pipes a text
    again = run(
        "generate", "-", "--schema", schema, "--seed", "1", "--max-tokens", "60", "--gpu-layers", "0", text=piped
    )
    assert again.stdout == done.stdout


def test_schemas_stand_on_the_command_line(tmp_path: Path) -> None:
    written = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "level": {"enum": ["low", "high"]}},
        "required": ["name", "level"],
        "additionalProperties": False,
    }
    short, file = "name, level: low|high", tmp_path / "short, with a comma"
    file.write_text(short)
    asked = ("generate", "Make up a person.", "--seed", "1", "--max-tokens", "40", "--threads", "1", "--schema")
    answers = [run(*asked, given) for given in (short, json.dumps(written), file)]
    assert [(done.returncode, done.stderr) for done in answers] == [(0, "")] * 3
    require_valid(written, answers[0].stdout)
    assert len({done.stdout for done in answers}) == 1
    exported = [run("export", given).stdout for given in (short, json.dumps(written), file)]
    assert len(set(exported)) == 1
    checked = run("check", short, "--json")
    assert json.loads(checked.stdout)[0]["schema"] == short
    assert checked.returncode == 0


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("name", "error: 'name' is neither a file nor a schema: JSON, MODULE:CLASS, or keys with types"),
        ("[a-z]+", "error: '[a-z]+' is neither a file nor a schema"),
        ("missing.json", "error: missing.json: there is no such file"),
        ("name, age integr", "error: line 1, column 7: 'age': unknown type 'integr'"),
        ('{"type": ', "error: line 1, column 10: not JSON: Expecting value"),
    ],
)
def test_schemas_on_the_command_line_that_are_none(given: str, error: str) -> None:
    for command in (("generate", "Make up a person.", "--schema"), ("export",)):
        done = run(*command, given)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(error)


@pytest.mark.slow
def test_generate_shows_the_prompt_in_place_of_an_answer(schema: Path) -> None:
    done = run("generate", "Make up a person.", "--schema", schema, "--show-prompt")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Answer with JSON in this format:" in done.stdout
    assert done.stdout.endswith("Make up a person.<|im_end|>\n<|im_start|>assistant\n\n")


@pytest.mark.slow
def test_generate_thinks_first(schema: Path) -> None:
    asked = ("generate", "Make up a person.", "--schema", schema, "--seed", "1", "--max-tokens", "60")
    done = run(*asked, "--draft")
    assert (done.returncode, done.stderr) == (0, "")
    require_valid(SCHEMA, done.stdout)
    shown = run(*asked, "--draft-tokens", "5", "--show-prompt").stdout
    assert "(the draft of the model)" in shown
    refused = run("generate", "Say hello.", "--draft")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("error: draft needs a schema or tools")
    status, shown = run_on_terminal(*asked, "--draft-tokens", "5")
    assert status == 0
    assert "name" in shown


@pytest.mark.slow
def test_generate_without_a_schema_prints_text() -> None:
    done = run("generate", "Say hello.", "--max-tokens", "5", "--temperature", "0")
    assert done.returncode == 0
    assert done.stdout.strip()


@pytest.mark.slow
def test_generate_on_a_terminal_shows_what_it_does(schema: Path) -> None:
    status, shown = run_on_terminal("generate", "Make up a person.", "--schema", schema, "--seed", "1")
    assert status == 0
    assert "Loading the default model" in shown
    assert "name" in shown
    assert "tokens in" in shown


@pytest.mark.slow
def test_generate_prints_fields_while_they_are_written(schema: Path) -> None:
    asked = ("generate", "Make up a person.", "--schema", schema, "--seed", "1", "--max-tokens", "60")
    lines = [json.loads(line) for line in run(*asked, "--stream", "fields").stdout.splitlines()]
    assert lines[0] == {"event": "begin", "path": ""}
    assert lines[-1] == {"event": "complete", "path": "", "value": json.loads(run(*asked).stdout)}
    assert {line["path"] for line in lines} == {"", *(f"/{name}" for name in lines[-1]["value"])}
    refused = run("generate", "x", "--regex", "a", "--stream", "fields")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "fields need --schema" in refused.stderr


@pytest.mark.slow
def test_generate_prints_the_answer_that_several_agree_on(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"enum": ["red", "green", "blue"]}')
    asked = ("generate", "A colour?", "--schema", tmp_path / "schema.json", "--seed", "1")
    done = run(*asked, "--vote", "3")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) in ("red", "green", "blue")
    status, shown = run_on_terminal(*map(str, asked), "--vote", "3")
    assert status == 0
    assert re.search("[123] of 3 answers agree", shown)
    assert run(*asked, "--vote", "1").returncode == 2
    for options, said in (
        (("--vote", "3", "--stream", "text"), "leave --stream out"),
        (("--vote", "3", "--confidence"), "how many agree"),
        (("--unbias",), "needs --vote"),
    ):
        refused = run(*asked, *options)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert said in " ".join(refused.stderr.split())


@pytest.mark.slow
def test_generate_weighs_the_answers_that_vote(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"enum": ["red", "green", "blue"]}')
    asked = ("generate", "A colour?", "--schema", tmp_path / "schema.json", "--seed", "1", "--vote", "3", "--unbias")
    done = run(*asked)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) in ("red", "green", "blue")
    refused = run(*asked, "--temperature", "0.5")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "leave temperature out" in refused.stderr


@pytest.mark.slow
def test_generate_tells_how_likely_each_part_was(tmp_path: Path) -> None:
    properties = {"mood": {"enum": ["happy", "sad"]}, "kind": {"const": "person"}}
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    done = run("generate", "Ada smiles.", "--schema", tmp_path / "schema.json", "--seed", "1", "--confidence")
    assert done.returncode == 0
    whole, mood, kind = done.stderr.splitlines()
    assert re.fullmatch(r"whole answer: [01]\.[0-9]{3}", whole)
    other = {"happy": "sad", "sad": "happy"}[json.loads(done.stdout)["mood"]]
    assert re.fullmatch(rf'/mood: [01]\.[0-9]{{3}}; "{other}" [01]\.[0-9]{{3}}', mood)
    assert re.fullmatch(r"/kind: (forced|[01]\.[0-9]{3})", kind)  # spaces in front may have been a choice


@pytest.mark.slow
def test_generate_quotes_from_files(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"type": "string", "x-quote": {"source": "letters", "min_length": 12}}')
    (tmp_path / "one.txt").write_text("Dear Ada, the engine is ready.")
    (tmp_path / "two.txt").write_text("Dear Charles, I am on my way.")
    asked = ("generate", "Quote a letter.", "--schema", tmp_path / "schema.json", "--seed", "1")
    done = run(*asked, *(f"--sources=letters={tmp_path / name}" for name in ("one.txt", "two.txt")))
    assert (done.returncode, done.stderr) == (0, "")
    quote = json.loads(done.stdout)
    assert len(quote) >= 12
    assert any(quote in (tmp_path / name).read_text() for name in ("one.txt", "two.txt"))
    refused = run(*asked, "--sources", "letters")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "NAME=FILE" in refused.stderr
    assert run(*asked, "--sources", f"letters={tmp_path / 'three.txt'}").returncode == 1


def test_generate_takes_policies_and_limits(schema: Path) -> None:
    limits = ("--max-string-tokens", "3", "--max-number-tokens", "2")
    done = run("generate", "A person?", "--schema", schema, "--whitespace", "compact", "--seed", "1", *limits)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == json.dumps(json.loads(done.stdout), separators=(",", ":"), ensure_ascii=False) + "\n"


@pytest.mark.slow
def test_references_are_found_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"$ref": "urn:colour"}')
    (tmp_path / "others.json").write_text('{"urn:colour": {"const": "red"}}')
    command = ("generate", "A colour?", "--schema", tmp_path / "schema.json", "--registry")
    done = run(*command, tmp_path / "others.json")
    assert (done.stdout, done.stderr) == ('"red"\n', "")
    (tmp_path / "others.json").write_text("[]")
    done = run(*command, tmp_path / "others.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "must be a JSON object" in done.stderr


@pytest.mark.slow
def test_a_byte_order_mark_in_front_of_files_is_ignored(tmp_path: Path) -> None:
    texts = {"schema": '{"$ref": "urn:colour"}', "others": '{"urn:colour": {"const": "red"}}', "lark": 'start: "red"'}
    texts["tag"] = '{"format": {"type": "const_string", "value": "red"}}'
    for name, text in texts.items():
        (tmp_path / name).write_text("\ufeff" + text, encoding="utf-8")
    by_schema = ("--schema", tmp_path / "schema", "--registry", tmp_path / "others")
    assert run("explain", '"red"', *by_schema).returncode == 0
    assert run("explain", "red", "--lark", tmp_path / "lark").returncode == 0
    assert run("explain", "red", "--structural-tag", tmp_path / "tag").returncode == 0
    done = run("check", tmp_path / "others")
    assert (done.returncode, done.stderr) == (0, "")
    assert run("compile", tmp_path / "others", "--cache", tmp_path / "kept").returncode == 0
    assert run("compile", "--structural-tag", tmp_path / "tag", "--cache", tmp_path / "kept").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--schema", "--lark", "--registry"])
def test_a_file_in_another_encoding_is_named(option: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text('{"type": "string"}', encoding="utf-16")
    done = (
        run("explain", "x", "--regex", "x", option, path)
        if option == "--registry"
        else run("explain", "x", option, path)
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"error: {path}: this is not UTF-8: ")


FAILURES = {
    "no schema file": (["--schema", "missing.json"], "missing.json: there is no such file"),
    "no registry file": (["--registry", "missing.json"], "missing.json: there is no such file"),
    "a folder": (["--schema", "{folder}"], ": this is a folder"),
    "no UTF-8": (["--schema", "{folder}/latin.json"], "latin.json: this is not UTF-8"),
    "no model file": (["--model", "missing.gguf"], "missing.gguf: cannot be opened"),
    "no model": (["--model", "{folder}/schema.json"], "not a GGUF file"),
    "too few tokens": (["--schema", "{folder}/schema.json", "--max-tokens", "2"], "max_tokens is 2"),
    "seed": (["--seed", "99999999999"], "seed"),
    "policy without a schema": (["--whitespace", "compact"], "whitespace applies to JSON Schemas only"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", FAILURES)
def test_failures_are_told_in_one_line(case: str, schema: Path) -> None:
    arguments, message = FAILURES[case]
    (schema.parent / "latin.json").write_bytes(b'{"const": "\xe9"}')
    done = run("generate", "x", *(argument.format(folder=schema.parent) for argument in arguments))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [[], ["generate"], ["write"], ["generate", "x", "--top-k", "many"], ["generate", "x", "--whitespace", "no"]],
)
def test_wrong_usage_has_a_status_of_its_own(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_check_says_what_is_enforced_and_under_which_policies(schema: Path) -> None:
    done = run("check", schema)
    assert (done.returncode, done.stderr) == (0, "")
    for expected in ("exact", "maxLength", "/properties/name/maxLength", "whitespace", "flexible", "shortest answer"):
        assert expected in done.stdout
    assert "Refused" not in done.stdout
    assert "tokens of SmolLM2" in done.stdout


@pytest.mark.slow
def test_check_lists_everything_that_is_refused(schema: Path) -> None:
    unsupported = {"a": {"type": "string", "pattern": "(a)\\1"}, "c~/": {"$ref": "https://example.com/schema"}}
    schema.write_text(json.dumps({**SCHEMA, "properties": unsupported}))
    done = run("check", schema)
    assert done.returncode == 1
    for pointer in ("/properties/a/pattern", "/properties/c~0~1/$ref"):
        assert pointer in done.stdout


@pytest.mark.slow
def test_check_says_that_a_schema_has_no_values(schema: Path) -> None:
    schema.write_text(json.dumps({"type": "integer", "minimum": 5, "maximum": 4}))
    done = run("check", schema)
    assert done.returncode == 1
    assert "Refused" in done.stdout


@pytest.mark.slow
def test_check_finds_what_can_never_hold(schema: Path) -> None:
    schema.write_text(json.dumps({"anyOf": [SCHEMA, {"type": "string", "minLength": 2, "maxLength": 1}]}))
    done = run("check", schema)
    assert done.returncode == 1
    assert "Refused" not in done.stdout
    assert "unsatisfiable-branch" in done.stdout
    assert "/anyOf/1" in done.stdout


@pytest.mark.slow
def test_check_gives_advice(schema: Path) -> None:
    schema.write_text(json.dumps({"type": "object", "properties": {"[b]": {"type": "string"}}}))
    done = run("check", schema)
    assert done.returncode == 0
    for expected in ("unbounded-string", "undescribed", "/properties/[b]"):
        assert expected in done.stdout


@pytest.mark.slow
def test_check_prints_json_for_programs(schema: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"type": "string", "pattern": "(a)\\1"}))
    done = run("check", "--json", schema, other)
    assert (done.returncode, done.stderr) == (1, "")
    exact, refused = json.loads(done.stdout)
    assert (exact["schema"], exact["exact"], exact["refused"]) == (str(schema), True, [])
    assert exact["length"]["unit"].startswith("tokens of")
    assert 2 < exact["length"]["shortest"] < exact["length"]["typical"]
    assert exact["policies"]["property_order"] == "schema"
    assert exact["automaton"]["rules"] == 1
    assert [finding["rule"] for finding in exact["advice"]] == ["undescribed", "undescribed"]
    assert not refused["exact"]
    assert [(finding["rule"], finding["pointer"]) for finding in refused["refused"]] == [("refused", "/pattern")]


@pytest.mark.slow
def test_check_counts_tokens_of_a_vocabulary(schema: Path) -> None:
    done = run("check", schema, "--vocab", demo_model(), "--json")
    assert json.loads(done.stdout)[0]["length"]["unit"] == f"tokens of {demo_model().name}"
    missing = run("check", schema, "--vocab", "missing.gguf")
    assert missing.returncode == 1
    assert "missing.gguf" in missing.stderr


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_check_names_a_file_that_is_no_json(schema: Path, text: str) -> None:
    schema.write_text(text)
    done = run("check", schema)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {schema} is not JSON")


def test_control_characters_do_not_reach_a_terminal() -> None:
    assert "a\x1b[2Jb\x9b\n\t".translate(constrain.cli.shared.HARMLESS) == "a�[2Jb�\n\t"


@pytest.mark.slow
def test_a_pattern_takes_the_place_of_a_schema(schema: Path, tmp_path: Path) -> None:
    done = run("generate", "A licence plate?", "--regex", "[A-Z]{2}-[0-9]{3}", "--seed", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"[A-Z]{2}-[0-9]{3}\n", done.stdout)
    assert run("generate", "x", "--regex", "a", "--schema", schema).returncode == 2
    wrong = run("generate", "x", "--regex", "a(")
    assert (wrong.returncode, wrong.stderr) == (
        1,
        "error: pattern 'a(', column 2: the group that begins here has no closing )\n",
    )
    kept = run(
        "compile", schema, "--regex", "a+", "--regex", "b", "--whitespace", "compact", "--cache", tmp_path / "kept"
    )
    assert kept.returncode == 0
    assert len(kept.stdout.splitlines()) == 3
    assert "a+: " in kept.stderr
    assert run("compile", "--regex", "a+", "--whitespace", "compact").returncode == 1
    assert run("compile").returncode == 2


@pytest.mark.slow
def test_a_list_of_grammars_is_a_lark_file(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    grammars = [{"lark_grammar": 'start: "x" @n'}, {"name": "n", "json_schema": {"type": "integer"}}]
    path.write_text(json.dumps({"grammars": grammars}), encoding="utf-8")
    assert run("explain", "x12", "--lark", path).returncode == 0
    refused = run("explain", "xy", "--lark", path)
    assert (refused.returncode, "integer in @n" in refused.stdout) == (1, True)
    path.write_text(json.dumps({"grammars": grammars[:1]}), encoding="utf-8")
    unknown = run("explain", "x12", "--lark", path)
    assert unknown.returncode == 2
    assert "there is no grammar @n" in unknown.stderr


@pytest.mark.slow
def test_explain_says_where_a_text_stops_matching(schema: Path) -> None:
    done = run("explain", '{"name": "Ada", "age": x}', "--schema", schema)
    assert (done.returncode, done.stderr) == (1, "")
    for expected in (
        "line 1, column 24 (byte 23)",
        "expected: integer (from /properties/age)",
        "'0' to '9'",
        "way to finish",
    ):
        assert expected in done.stdout
    matching = run("explain", "-", "--lark", "semver", text="1.2.3-rc.1")
    assert (matching.returncode, matching.stdout.splitlines()[0]) == (0, "the text matches")
    ended = run("explain", "--regex", "a+b", "aa")
    assert (ended.returncode, ended.stdout.splitlines()[0]) == (
        1,
        "the text is incomplete: it ends at line 1, column 3 (byte 2)",
    )


@pytest.mark.slow
def test_explain_takes_policies_and_closing(schema: Path) -> None:
    compact = run("explain", '{"name": "Ada"}', "--schema", schema, "--whitespace", "compact")
    assert (compact.returncode, compact.stdout.splitlines()[0]) == (
        1,
        "the text stops matching at line 1, column 9 (byte 8)",
    )
    schema.write_text('{"properties": {"a": {"$ref": "urn:colour"}}, "type": "object"}')
    registry = schema.with_name("registry.json")
    registry.write_text('{"urn:colour": {"const": "red"}}')
    command = ("explain", '{"b": 1}', "--schema", schema, "--registry", registry)
    assert [run(*command, flag).returncode for flag in ("--open", "--closed")] == [0, 1]


@pytest.mark.slow
def test_explain_reads_a_file_as_it_is(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"caf\xc3\xa9\x1b\xff\n")
    done = run("explain", "--file", text, "--regex", r"\w+")
    assert (done.returncode, done.stdout.splitlines()[:3]) == (
        1,
        ["the text stops matching at line 1, column 5 (byte 5)", "    café��", "        ^"],
    )


@pytest.mark.slow
def test_explain_lists_the_tokens_of_a_model(schema: Path) -> None:
    done = run("explain", '{"name": "Ada", "age": 12x}', "--schema", schema, "--model", demo_model())
    assert (done.returncode, done.stderr) == (1, "")
    *_, first, second, last, _ = done.stdout.splitlines()
    assert [len(line.split("│")) for line in (first, second, last)] == [8, 8, 8]
    assert "not allowed" in last
    assert "'x'" in last
    assert "not allowed" not in first + second


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x"], "no schema, pattern or grammar"),
        (["--regex", "a"], "either as an argument or with --file"),
        (["x", "--file", "x", "--regex", "a"], "either as an argument or with --file"),
        (["x", "--regex", "a("], "pattern 'a(', column 2"),
        (["x", "--regex", "a", "--lark", "semver"], "give one of them"),
        (["x", "--regex", "a", "--structural-tag", "x.json"], "give one of them"),
        (["x", "--lark", "no such grammar"], "no grammar 'no such grammar'"),
        (["x", "--regex", "a", "--whitespace", "compact"], "whitespace applies to JSON Schemas only"),
        (["x", "--regex", "a", "--closed"], "closed applies to JSON Schemas only"),
        (["x", "--schema", "missing.json"], "missing.json"),
        (["--file", "missing.txt", "--regex", "a"], "missing.txt"),
        (["x", "--regex", "a", "--model", "missing.gguf"], "missing.gguf: cannot be opened"),
    ],
)
def test_explain_has_a_status_of_its_own_for_what_it_cannot_use(arguments: list[str], message: str) -> None:
    done = run("explain", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version_is_printed() -> None:
    done = run("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"constrain \S.*\n", done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [("check",), ("compile",), ("batch", "-o", "out.jsonl"), ("serve", "--config"), ("explain", "--file")]
)
def test_every_command_names_the_file_that_is_not_there(command: tuple[str, ...], tmp_path: Path) -> None:
    more = ("--regex", "a") if command[0] == "explain" else ()
    done = run(*command, tmp_path / "none.json", *more)
    assert done.returncode in (1, 2)
    assert "none.json: there is no such file" in done.stderr
    assert "Errno" not in done.stderr


@pytest.mark.slow
def test_generate_shows_the_warnings_of_a_schema(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"type": "string", "minLenght": 3, "maxLength": 5}')
    done = run("generate", "Say hello.", "--schema", tmp_path / "schema.json")
    assert done.returncode == 0
    assert "minLenght" in done.stderr


@pytest.mark.slow
def test_compile_shows_the_warnings_of_a_schema_once(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"minLenght": 3, "type": "string"}')
    done = run("compile", tmp_path / "schema.json", "--max-masks", "1", "--cache", tmp_path / "kept")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("warning: the keyword 'minLenght'") == 1


@pytest.mark.slow
def test_a_pattern_has_the_dialect_that_is_said() -> None:
    assert run("explain", "b", "--regex", "b(?!a)", "--dialect", "python").returncode == 0
    refused = run("explain", "b", "--regex", "b(?!a)")
    assert (refused.returncode, "dialect 'ecma' or 'python'" in refused.stderr) == (2, True)
    assert "needs --regex" in run("explain", "b", "--dialect", "python").stderr


@pytest.mark.slow
def test_serve_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['starlette'] = None; sys.argv[1:] = ['serve'];"
        "from constrain.cli.program import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr == "constrain: starlette is missing; pip install 'constrain-llm[server]'\n"


@pytest.mark.slow
def test_export_writes_grammars_for_other_programs(schema: Path, tmp_path: Path) -> None:
    done = run("export", schema, "--to", "gbnf", "--whitespace", "compact")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith('root ::= "{\\"name\\":\\""')
    assert run("export", "--regex", "[ab]+", "--to", "lark").stdout.startswith("start: /[ab]+/\n")
    gbnf = tmp_path / "list.gbnf"
    gbnf.write_text('root ::= "x" ("," root)?')
    assert run("export", "--gbnf", gbnf, "--to", "regex").stdout == "(?:x,)*x\n"


@pytest.mark.slow
def test_export_refuses_what_the_notation_cannot_say(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text('{"type": "object", "properties": {"a": {"type": "object"}}}')
    done = run("export", path)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"error: {path}: at the root of the schema: GBNF cannot say that keys differ" in done.stderr
    assert "as those here in the value of 'a' must" in done.stderr
    assert run("export", path, "--repeated-keys").returncode == 0
    for wrong in ((), (path, "--to", "ebnf"), (path, "--regex", "a")):
        assert run("export", *wrong).returncode == 2


@pytest.mark.long
def test_generate_keeps_evaluated_prompts_unless_told(tmp_path: Path) -> None:
    kept = tmp_path / "cache" / "prompts-v1"
    asked = ("generate", "Books are good. " * 90, "--max-tokens", "2", "--threads", "1")
    for flags in ((), ("--no-prompt-cache",)):
        assert run(*asked, *flags).returncode == 0
        assert not kept.exists()
    assert run(*asked, "--cache-whole-prompt").returncode == 0
    assert kept.is_dir()
    both = run(*asked, "--no-prompt-cache", "--cache-whole-prompt")
    assert both.returncode == 2
    assert "exclude each other" in both.stderr
