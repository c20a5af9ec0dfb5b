"""The command line: what its commands write, and their exit statuses."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from pathlib import Path

import pytest

from constrain.cli.shared import HARMLESS
from tests.support import demo_model, each_row, for_each
from tests.support.command_line import call, run, run_on_terminal
from tests.support.judging import require_valid

pytestmark = pytest.mark.usefixtures("tiny_model")

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
    "additionalProperties": False,
}
ASKED = ("generate", "Make up a person.", "--schema", "schema.json", "--seed", "1", "--max-tokens", "60")
FILES = {
    "schema.json": json.dumps(SCHEMA),
    "colour.json": '{"enum": ["red", "green", "blue"]}',
    "reference.json": '{"$ref": "urn:colour"}',
    "registry.json": '{"urn:colour": {"const": "red"}}',
    "list.json": "[]",
    "bracket.json": "{",
    "deep.json": "[" * 100_000,
    "unknown.json": '{"type": "string", "minLenght": 3, "maxLength": 5}',
    "marked.json": '\ufeff{"$ref": "urn:colour"}',
    "marked-registry.json": '\ufeff{"urn:colour": {"const": "red"}}',
    "marked.lark": '\ufeffstart: "red"',
    "marked-tag.json": '\ufeff{"format": {"type": "const_string", "value": "red"}}',
}


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "word.txt").write_text("hello\n")
    (tmp_path / "latin.json").write_bytes(b'{"const": "\xe9"}')


@each_row(
    "command, usage",
    ("generate", "generate [OPTIONS] PROMPT "),
    ("explain", "explain [OPTIONS] [TEXT] "),
    ("check", "check [OPTIONS] [SCHEMA]... "),
    ("verify", "verify [OPTIONS] FILES... "),
)
def test_usage_names_arguments_in_capitals(command: str, usage: str) -> None:
    assert usage in call(command, "--help").stdout


def test_no_command_is_wrong_usage_that_shows_the_commands() -> None:
    done = call()
    assert (done.returncode, "generate" in done.stdout) == (2, True)


REFUSED = """
2 | generate |
2 | write |
2 | generate x --top-k many |
2 | generate x --whitespace no |
2 | generate x --schema name str age | unexpected arguments: str age; quotation marks keep the words of one argument
2 | batch in.jsonl -o out.jsonl --schema name str age | unexpected arguments: str age; quotation marks
1 | generate x --schema name | 'name' is neither a file nor a schema: JSON, MODULE:CLASS, or keys with types
1 | generate x --schema word.txt | word.txt has one word, 'hello', which is no schema: JSON, or keys with types
1 | export [a-z]+ | '[a-z]+' is neither a file nor a schema
1 | export missing.json | missing.json: there is no such file
1 | export 'name, age integr' | line 1, column 7: 'age': unknown type 'integr'
1 | generate x --schema '{"type": ' | line 1, column 10: not JSON: Expecting value
1 | generate x --schema missing.json | missing.json: there is no such file
1 | generate x --registry missing.json | missing.json: there is no such file
1 | generate x --schema reference.json --registry list.json | must be a JSON object
1 | generate x --schema . | .: this is a folder
1 | generate x --schema latin.json | latin.json: this is not UTF-8
1 | generate x --model missing.gguf | missing.gguf: cannot be opened
1 | generate x --model schema.json | not a GGUF file
1 | generate x --schema schema.json --max-tokens 2 | max_tokens is 2
1 | generate x --seed 99999999999 | seed
1 | generate x --whitespace compact | whitespace applies to JSON Schemas only
1 | generate x --draft | draft needs a schema or tools
2 | generate x --regex a --schema schema.json | exclude each other
1 | generate x --regex a( | pattern 'a(', column 2: the group that begins here has no closing )
2 | generate x --regex a --stream fields | fields need --schema
2 | generate x --schema colour.json --vote 1 |
2 | generate x --schema colour.json --vote 3 --stream text | leave --stream out
2 | generate x --schema colour.json --vote 3 --confidence | how many agree
2 | generate x --schema colour.json --unbias | needs --vote
1 | generate x --schema colour.json --vote 3 --unbias --temperature 0.5 | leave temperature out
2 | generate x --schema colour.json --sources letters | NAME=FILE
1 | generate x --schema colour.json --sources letters=three.txt | three.txt: there is no such file
2 | generate x --schema colour.json --table people | NAME=SOURCE
1 | generate x --schema colour.json --table people=people | neither a file that ends in .csv
1 | generate x --schema colour.json --table people=no.db:people | there is no database no.db
2 | generate x --no-prompt-cache --cache-whole-prompt | exclude each other
2 | check | no schema and no tools
1 | check --tools bracket.json | bracket.json is not JSON
1 | check --tools schema.json | has no list of tools
1 | check missing.json | missing.json: there is no such file
1 | check schema.json --vocab missing.gguf | missing.gguf
1 | check /dev/null | /dev/null is not JSON
1 | check bracket.json | bracket.json is not JSON
1 | check deep.json | deep.json is not JSON
1 | compile missing.json | missing.json: there is no such file
1 | compile --regex a+ --whitespace compact | whitespace applies to JSON Schemas only
2 | compile |
1 | batch missing.json -o out.jsonl | missing.json: there is no such file
1 | serve --config missing.json | missing.json: there is no such file
2 | export |
2 | export schema.json --to ebnf |
2 | export schema.json --regex a |
2 | explain x | no schema, pattern or grammar
2 | explain --regex a | either as an argument or with --file
2 | explain x --file x --regex a | either as an argument or with --file
2 | explain x --regex a( | pattern 'a(', column 2
2 | explain x --regex b(?!a) | dialect 'ecma' or 'python'
2 | explain x --dialect python | needs --regex
2 | explain x --regex a --lark semver | give one of them
2 | explain x --regex a --structural-tag x.json | give one of them
2 | explain x --lark no_such_grammar | no grammar 'no_such_grammar'
2 | explain x --lark 'start: "a"' | neither a file nor a name; write the text of a grammar into a file
2 | explain x --lark latin.json | latin.json: this is not UTF-8
2 | explain x --regex a --registry latin.json | latin.json: this is not UTF-8
2 | explain x --regex a --whitespace compact | whitespace applies to JSON Schemas only
2 | explain x --regex a --closed | closed applies to JSON Schemas only
2 | explain x --schema missing.json | missing.json: there is no such file
2 | explain --file missing.txt --regex a | missing.txt: there is no such file
2 | explain x --regex a --model missing.gguf | missing.gguf: cannot be opened
"""
"""Exit status, command, and what standard error says."""


@for_each("case", REFUSED.strip().split("\n"))
def test_what_cannot_be_done_is_told_in_one_line(case: str) -> None:
    status, command, says = (part.strip() for part in case.split(" |", 2))
    lexer = shlex.shlex(command, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    done = call(*lexer)
    assert (done.returncode, done.stdout) == (int(status), ""), done.stderr
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert "Errno" not in done.stderr
    if status == "1":
        assert (done.stderr[:7], done.stderr.count("\n")) == ("error: ", 1)


def test_generate_prints_json_and_nothing_else() -> None:
    done = call(*ASKED, "--threads", "1")
    assert (done.returncode, done.stderr) == (0, "")
    require_valid(SCHEMA, done.stdout)
    piped = "\ufeffMake up a person."  # as PowerShell pipes a text
    again = call("generate", "-", *ASKED[2:], "--gpu-layers", "0", text=piped)
    assert again.stdout == done.stdout


@pytest.mark.slow
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
    answers = [call(*asked, given) for given in (short, json.dumps(written), file)]
    assert [(done.returncode, done.stderr) for done in answers] == [(0, "")] * 3
    require_valid(written, answers[0].stdout)
    assert len({done.stdout for done in answers}) == 1
    assert len({call("export", given).stdout for given in (short, json.dumps(written), file)}) == 1
    assert json.loads(call("check", short, "--json").stdout)[0]["schema"] == short


def test_generate_shows_the_prompt_in_place_of_an_answer() -> None:
    done = call(*ASKED, "--show-prompt")
    assert (done.returncode, done.stderr) == (0, "")
    shown = done.stdout.replace("\u2581", " ")  # spaces as the tiny model's tokenizer has them
    assert "Answer with JSON in this format:" in shown
    assert "Make up a person." in shown


@pytest.mark.slow
def test_generate_thinks_first() -> None:
    done = call(*ASKED, "--draft")
    assert (done.returncode, done.stderr) == (0, "")
    require_valid(SCHEMA, done.stdout)
    assert "(the draft of the model)" in call(*ASKED, "--draft-tokens", "5", "--show-prompt").stdout
    shown = call(*ASKED, "--draft-tokens", "5", on_terminal=True)
    assert shown.returncode == 0
    require_valid(SCHEMA, shown.stdout)
    assert len(shown.stderr) > len(call(*ASKED, on_terminal=True).stderr), "the draft is shown"


def test_generate_without_a_schema_prints_text() -> None:
    done = call("generate", "Say hello.", "--max-tokens", "5", "--temperature", "0")
    assert (done.returncode, done.stdout.strip() != "") == (0, True)


@pytest.mark.slow
def test_generate_on_a_terminal_shows_what_it_does() -> None:
    status, shown = run_on_terminal(*ASKED)
    assert status == 0
    for expected in ("Loading the default model", "name", "tokens in"):
        assert expected in shown
    inside = call(*ASKED, on_terminal=True)
    assert "Reading the prompt" in inside.stderr
    assert inside.stdout == call(*ASKED).stdout.translate(HARMLESS)


def test_generate_prints_fields_while_they_are_written() -> None:
    lines = [json.loads(line) for line in call(*ASKED, "--stream", "fields").stdout.splitlines()]
    assert lines[0] == {"event": "begin", "path": ""}
    assert lines[-1] == {"event": "complete", "path": "", "value": json.loads(call(*ASKED).stdout)}
    assert {line["path"] for line in lines} == {"", *(f"/{name}" for name in lines[-1]["value"])}


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--unbias",)])
def test_generate_prints_the_answer_that_several_agree_on(more: tuple[str, ...]) -> None:
    asked = ("generate", "A colour?", "--schema", "colour.json", "--seed", "1", "--vote", "3", *more)
    done = call(*asked)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) in ("red", "green", "blue")
    shown = call(*asked, on_terminal=True)
    assert (shown.returncode, shown.stdout) == (0, done.stdout)
    assert re.search("[123] of 3 answers agree", shown.stderr)


def test_generate_tells_how_likely_each_part_was() -> None:
    properties = {"key": {"enum": [*"abcdefghijklmnopqrstuvwxyz"]}, "kind": {"const": "person"}}
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    done = call("generate", "Ada smiles.", "--schema", json.dumps(schema), "--seed", "1", "--confidence")
    assert done.returncode == 0
    whole, key, kind = done.stderr.splitlines()
    assert re.fullmatch(r"whole answer: [01]\.[0-9]{3}", whole)
    assert re.fullmatch(r'/key: [01]\.[0-9]{3}(; "[a-z]" [01]\.[0-9]{3})+', key)
    assert f'"{json.loads(done.stdout)["key"]}"' not in key, "other values"
    assert re.fullmatch(r"/kind: (forced|[01]\.[0-9]{3})", kind)  # spaces in front may have been a choice


def test_generate_quotes_from_files(tmp_path: Path) -> None:
    schema = '{"type": "string", "x-quote": {"source": "letters", "min_length": 12}}'
    letters = {"one.txt": "Dear Ada, the engine is ready.", "two.txt": "On my way."}
    for name, text in letters.items():
        (tmp_path / name).write_text(text)
    asked = ("generate", "Quote a letter.", "--schema", schema, "--seed", "1")
    done = call(*asked, *(f"--sources=letters={name}" for name in letters))
    assert (done.returncode, done.stderr) == (0, "")
    quote = json.loads(done.stdout)
    assert len(quote) >= 12
    assert quote in letters["one.txt"], "the other one is too short"


def test_generate_takes_values_of_tables(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name,born\nAda,1815\n")
    with sqlite3.connect(tmp_path / "crm.db") as database:
        database.execute("CREATE TABLE customers AS SELECT 'Grace' AS name")
    names = [{"x-one-of": {"table": table, "column": "name"}} for table in ("people", "customers")]
    schema = json.dumps({"type": "array", "prefixItems": names, "minItems": 2, "items": False})
    asked = ("generate", "Who?", "--schema", schema, "--whitespace", "compact")
    done = call(*asked, "--table", "people=people.csv", "--table", "customers=crm.db:customers")
    assert (done.stdout, done.stderr) == ('["Ada","Grace"]\n', "")


def test_generate_takes_policies_limits_and_a_registry() -> None:
    limits = ("--max-string-tokens", "3", "--max-number-tokens", "2")
    done = call(*ASKED, "--whitespace", "compact", *limits)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == json.dumps(json.loads(done.stdout), separators=(",", ":"), ensure_ascii=False) + "\n"
    assert len(json.loads(done.stdout)["name"].encode()) <= 3
    done = call("generate", "A colour?", "--schema", "reference.json", "--registry", "registry.json")
    assert (done.stdout, done.stderr) == ('"red"\n', "")


@pytest.mark.slow
def test_a_byte_order_mark_in_front_of_files_is_ignored() -> None:
    for command in (
        ("explain", '"red"', "--schema", "marked.json", "--registry", "marked-registry.json"),
        ("explain", "red", "--lark", "marked.lark"),
        ("explain", "red", "--structural-tag", "marked-tag.json"),
        ("check", "marked-registry.json"),
        ("compile", "marked-registry.json", "--cache", "kept"),
        ("compile", "--structural-tag", "marked-tag.json", "--cache", "kept"),
    ):
        done = call(*command)
        assert done.returncode == 0, done.stderr


def test_check_says_what_is_enforced_and_under_which_policies() -> None:
    done = call("check", "schema.json")
    assert (done.returncode, done.stderr) == (0, "")
    for expected in ("exact", "maxLength", "/properties/name/maxLength", "whitespace", "flexible", "shortest answer"):
        assert expected in done.stdout
    assert "Refused" not in done.stdout
    assert "tokens of SmolLM2" in done.stdout


def test_check_lists_all_findings() -> None:
    refused = {"a": {"type": "string", "pattern": "(a)\\1"}, "c~/": {"$ref": "https://example.com/schema"}}
    done = call("check", json.dumps({**SCHEMA, "properties": refused}))
    assert done.returncode == 1
    assert all(expected in done.stdout for expected in ("/properties/a/pattern", "/properties/c~0~1/$ref", "Refused"))
    done = call("check", json.dumps({"anyOf": [SCHEMA, {"type": "string", "minLength": 2, "maxLength": 1}]}))
    assert done.returncode == 1
    assert all(expected in done.stdout for expected in ("unsatisfiable-branch", "/anyOf/1"))
    done = call("check", '{"type": "object", "properties": {"[b]": {"type": "string"}}}')
    assert done.returncode == 0
    assert all(expected in done.stdout for expected in ("unbounded-string", "undescribed", "/properties/[b]"))


def test_check_prints_json_for_programs() -> None:
    given = '{"type": "string", "pattern": "(a)\\\\1"}'
    done = call("check", "--json", "schema.json", given, "--vocab", demo_model())
    assert (done.returncode, done.stderr) == (1, "")
    exact, refused = json.loads(done.stdout)
    assert (exact["schema"], exact["exact"], exact["refused"]) == ("schema.json", True, [])
    assert exact["length"]["unit"] == f"tokens of {demo_model().name}"
    assert 2 < exact["length"]["shortest"] < exact["length"]["typical"]
    assert exact["policies"]["property_order"] == "schema"
    assert exact["automaton"]["rules"] == 1
    assert [finding["rule"] for finding in exact["advice"]] == ["undescribed", "undescribed"]
    assert not refused["exact"]
    assert [(finding["rule"], finding["pointer"]) for finding in refused["refused"]] == [("refused", "/pattern")]


def test_check_tells_the_costs_of_tools_and_which_are_alike(tmp_path: Path) -> None:
    refused = {"type": "object", "properties": {"b": {"type": "string", "pattern": "(a)\\1"}}}
    tools = [{"name": "read_file", "inputSchema": SCHEMA}, {"name": "read_files", "inputSchema": refused}]
    (tmp_path / "tools.json").write_text(json.dumps({"tools": tools}))
    done = call("check", "--tools", "tools.json", "--vocab", demo_model())
    assert (done.returncode, done.stderr) == (1, "")
    for expected in ("2 tools", f"tokens of {demo_model().name}", "begin alike (89%)", "/properties/b/pattern"):
        assert expected in done.stdout
    listed, schema = json.loads(call("check", "schema.json", "--tools", "tools.json", "--json").stdout)
    assert (listed["tools_of"], schema["schema"]) == ("tools.json", "schema.json")
    assert listed["tokens"] == listed["frame"] + sum(tool["tokens"] for tool in listed["tools"])
    assert [finding["pointer"] for tool in listed["tools"] for finding in tool["refused"]] == ["/properties/b/pattern"]


def test_control_characters_do_not_reach_a_terminal() -> None:
    assert "a\x1b[2Jb\x9b\n\t".translate(HARMLESS) == "a�[2Jb�\n\t"


def test_a_pattern_takes_the_place_of_a_schema() -> None:
    done = call("generate", "A licence plate?", "--regex", "[A-Z]{2}-[0-9]{3}", "--seed", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"[A-Z]{2}-[0-9]{3}\n", done.stdout)
    kept = call("compile", "schema.json", "--regex", "a+", "--regex", "b", "--whitespace", "compact", "--cache", "kept")
    assert kept.returncode == 0
    assert len(kept.stdout.splitlines()) == 3
    assert "a+: " in kept.stderr
    assert call("explain", "b", "--regex", "b(?!a)", "--dialect", "python").returncode == 0


def test_a_list_of_grammars_is_a_lark_file(tmp_path: Path) -> None:
    path = tmp_path / "grammars.json"
    grammars = [{"lark_grammar": 'start: "x" @n'}, {"name": "n", "json_schema": {"type": "integer"}}]
    path.write_text(json.dumps({"grammars": grammars}), encoding="utf-8")
    assert call("explain", "x12", "--lark", path).returncode == 0
    refused = call("explain", "xy", "--lark", path)
    assert (refused.returncode, "integer in @n" in refused.stdout) == (1, True)
    path.write_text(json.dumps({"grammars": grammars[:1]}), encoding="utf-8")
    unknown = call("explain", "x12", "--lark", path)
    assert (unknown.returncode, "there is no grammar @n" in unknown.stderr) == (2, True)


def test_explain_says_where_a_text_stops_matching() -> None:
    done = call("explain", '{"name": "Ada", "age": x}', "--schema", "schema.json")
    assert (done.returncode, done.stderr) == (1, "")
    for expected in (
        *("line 1, column 24 (byte 23)", "expected: integer (from /properties/age)", "'0' to '9'", "way to finish"),
    ):
        assert expected in done.stdout
    matching = call("explain", "-", "--lark", "semver", text="1.2.3-rc.1")
    assert (matching.returncode, matching.stdout.splitlines()[0]) == (0, "the text matches")


def test_explain_takes_policies_and_closing() -> None:
    compact = call("explain", '{"name": "Ada"}', "--schema", "schema.json", "--whitespace", "compact")
    place = "the text stops matching at line 1, column 9 (byte 8)"
    assert (compact.returncode, compact.stdout.splitlines()[0]) == (1, place)
    schema = '{"properties": {"a": {"$ref": "urn:colour"}}, "type": "object"}'
    command = ("explain", '{"b": 1}', "--schema", schema, "--registry", "registry.json")
    assert [call(*command, flag).returncode for flag in ("--open", "--closed")] == [0, 1]


def test_explain_reads_a_file_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"caf\xc3\xa9\x1b\xff\n")
    done = call("explain", "--file", "text", "--regex", r"\w+")
    shown = ["the text stops matching at line 1, column 5 (byte 5)", "    café��", "        ^"]
    assert (done.returncode, done.stdout.splitlines()[:3]) == (1, shown)


def test_explain_lists_the_tokens_of_a_model() -> None:
    given = ("explain", '{"name": "Ada", "age": 12x}', "--schema", "schema.json", "--model", demo_model())
    done = call(*given)
    assert (done.returncode, done.stderr) == (1, "")
    *_, first, second, last, _ = done.stdout.splitlines()
    assert [len(line.split("│")) for line in (first, second, last)] == [8, 8, 8]
    assert "not allowed" in last
    assert "'x'" in last
    assert "not allowed" not in first + second


@pytest.mark.slow
def test_the_version_is_printed() -> None:
    done = run("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"constrain \S.*\n", done.stdout)


def test_warnings_of_a_schema_are_shown_once() -> None:
    done = call("generate", "Say hello.", "--schema", "unknown.json")
    assert (done.returncode, done.stderr.count("warning: the keyword 'minLenght'")) == (0, 1)
    done = call("compile", "unknown.json", "--max-masks", "1", "--cache", "kept")
    assert (done.returncode, done.stderr.count("warning: the keyword 'minLenght'")) == (0, 1)


@pytest.mark.slow
def test_export_writes_grammars_for_other_programs(tmp_path: Path) -> None:
    done = call("export", "schema.json", "--to", "gbnf", "--whitespace", "compact")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith('root ::= "{\\"name\\":\\""')
    assert call("export", "--regex", "[ab]+", "--to", "lark").stdout.startswith("start: /[ab]+/\n")
    (tmp_path / "list.gbnf").write_text('root ::= "x" ("," root)?')
    assert call("export", "--gbnf", "list.gbnf", "--to", "regex").stdout == "(?:x,)*x\n"


def test_export_refuses_what_the_notation_cannot_say(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text('{"type": "object", "properties": {"a": {"type": "object"}}}')
    done = call("export", "keys.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "error: keys.json: at the root of the schema: GBNF cannot say that keys differ" in done.stderr
    assert "as those here in the value of 'a' must" in done.stderr
    assert call("export", "keys.json", "--repeated-keys").returncode == 0


@pytest.mark.slow
def test_generate_keeps_evaluated_prompts_unless_told(tmp_path: Path) -> None:
    kept = tmp_path / "cache" / "prompts-v1"
    asked = ("generate", "Books are good. " * 90, "--max-tokens", "2", "--threads", "1")
    for flags in ((), ("--no-prompt-cache",)):
        assert call(*asked, *flags).returncode == 0
        assert not kept.exists()
    assert call(*asked, "--cache-whole-prompt").returncode == 0
    assert kept.is_dir()
