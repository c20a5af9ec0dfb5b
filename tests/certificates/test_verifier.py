"""``constrain/verify.py``: it stands alone, reads files of several certificates, and refuses what was changed."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

import constrain
from constrain import verify as verifier
from constrain.certificates.certificate import canonical, certify, digest
from constrain.verify import Match, data
from constrain.work import MAX_PATTERN_NESTING
from tests.support import LONG, byte_vocabulary, each_row, for_each

FILE = Path(verifier.__file__)
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "number", "multipleOf": 0.01}, "s": {"type": "string"}},
    "required": ["n", "s"],
}


def made(text: str, *, previous: str | None = None) -> dict[str, Any]:
    """The certificate of a text of ``SCHEMA``, each byte of which is a token."""
    constraint = constrain.compile(SCHEMA, byte_vocabulary())
    source = {"kind": "json_schema", "text": json.dumps(SCHEMA), "policies": {"precision": "double"}}
    certificate = certify(constraint, list(text.encode()), previous=previous, facts={"source": source})
    found: dict[str, Any] = json.loads(canonical(certificate))
    return found


def sealed(certificate: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """A certificate that was changed, with hashes that agree again."""
    body = {**certificate, **changed}
    del body["sha256"]
    body["grammar_sha256"] = digest(body["grammar"])
    return {**body, "sha256": digest(body)}


def test_it_is_short_and_imports_only_the_standard_library() -> None:
    text = FILE.read_text()
    assert len(text.splitlines()) <= 441
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add(str(node.module).partition(".")[0])
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
            assert node.args[0].value in ("jsonschema", "referencing")  # type: ignore[attr-defined]
    assert names <= sys.stdlib_module_names


@pytest.mark.slow
def test_it_runs_alone(tmp_path: Path) -> None:
    shutil.copy(FILE, tmp_path / "check.py")
    (tmp_path / "c.json").write_text(canonical(made('{"n": 0.07, "s": "é"}')))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-I", "check.py", "c.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    holds, last = done.stdout.splitlines()
    assert "c.json: 1: holds, jsonschema agrees, sha256 " in holds
    assert last.startswith("not checked: signatures, prompts, models")


def test_a_file_may_hold_a_chain(tmp_path: Path) -> None:
    chain: list[dict[str, Any]] = []
    for number in range(3):
        chain.append(made(f'{{"n": {number}, "s": ""}}', previous=chain[-1]["sha256"] if chain else None))
    (tmp_path / "all.jsonl").write_text("".join(canonical(each) + "\n" for each in chain))
    (tmp_path / "missing.jsonl").write_text("\n".join(map(canonical, [chain[0], chain[2]])))
    (tmp_path / "pretty.json").write_text("\n".join(json.dumps(each, indent=2) for each in chain[:2]))
    assert verifier.main([str(tmp_path / "all.jsonl")]) == 0
    assert verifier.main([str(tmp_path / "pretty.json"), str(tmp_path / "all.jsonl")]) == 0
    assert verifier.main([str(tmp_path / "missing.jsonl")]) == 1


@each_row(
    "text, why",
    ("[" * 100_000, "RecursionError"),
    ("[]", "TypeError"),
    ("{}", "KeyError"),
    ("no JSON", "JSONDecodeError"),
    ('{"format": "constrain certificate 2"}', "the format is not 'constrain certificate 1'"),
)
def test_what_is_no_certificate_is_refused(
    tmp_path: Path, text: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.json").write_text(text)
    assert verifier.main([str(tmp_path / "c.json")]) == 1
    said = capsys.readouterr().out
    assert "refused: " in said
    assert why in said


WORD: list[Any] = [["literal", ["ab"]]]


def of_word(expressions: list[Any] = WORD, tokens: Any = None, **changed: Any) -> dict[str, Any]:
    """A certificate of the text ``ab``, matched by the last expression; ``changed``: members, of the grammar, too."""
    members = {
        "tokens": [[10, "a"], [11, "b"]] if tokens is None else tokens,
        "text": "ab",
        "vocabulary": {"eos": [11]},
        "budget": {"max_tokens": None, "needed": []},
        "derivation": [[0, 2], -1],
    }
    grammar = {
        "rules": [{"edges": [[0, 0, 1, [], [], -1, -1]], "accepting": [1], "slots": []}],
        "terminals": [{"expression": len(expressions) - 1}],
        "expressions": expressions,
        "ignored": [],
        "numbers_by_double": True,
        "strings_by_value": False,
    }
    grammar |= {name: value for name, value in changed.items() if name in grammar}
    members |= {name: value for name, value in changed.items() if name not in grammar}
    facts = {"format": verifier.FORMAT, "previous": None, "grammar": grammar, "sha256": ""}
    return sealed({**facts, **members})


A, B = ["literal", ["a"]], ["literal", ["b"]]


@for_each(
    "expressions",
    [["class", [[-5, -1]], "char"]],
    [["class", [[0, 255]], "bytes"]],
    [A, B, ["repeat", 0, 5, 2], ["all", [0, 2, 1]]],
    [["literal", ["a", "b"]], ["repeat", 0, 0, -1]],
    [["literal", ["a", "b"]], ["repeat", 0, 0, 2.5]],
    [["literal", ["a", "b"]], ["repeat", 0, True, 2]],
    [["steps", 1]],
    [["character", "byte"]],
    [A, B, ["both", []], ["all", [0, 2, 1]]],
    [["all", [0]]],
    [["literal", "ab"]],
    [["literal", {"ab": 1}]],
    [["literal", ["ab"], 1]],
    [["not", 1], ["literal", ["x"]]],
    [["substring", ["ab"], 0, None, "char", ["1x1"]]],
    [["substring", ["ab"], 0, None, "char", ["10"] * 2]],
    [["substring", ["ab"], 0, None, "char", ["1"]]],
    [["substring", ["ab"], 0, -1, "char", []]],
)
def test_expressions_that_the_format_does_not_know_match_nothing(expressions: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"malformed|does not match|contains itself|cuts"):
        constrain.certificates.verify_certificate(of_word(expressions))


EDGE = [0, 0, 1, [], [], -1, -1]


@for_each(
    "changed",
    {"tokens": [[10, "a"], [11, "b", "name"]], "budget": {"max_tokens": 1, "needed": []}},
    *({"tokens": [[10, "a"], [name, "b"]]} for name in (None, "x", 1.0, True, -3)),
    {"tokens": ["5a", "5b"]},
    {"tokens": [[10, "a"], [11, "b"], [12, "", ""]]},
    {"tokens": [[10, "a"], [11, {"hex": " 62"}]]},
    {"vocabulary": {"eos": None}},
    *({"derivation": steps} for steps in ([[0, 2.0], -1], [[False, 2], -1], [[0, 2], [-1, None]], [[0, 2], -1.0])),
    *({"budget": {"max_tokens": most, "needed": []}} for most in (2.0, True, "2")),
    *({"budget": {"max_tokens": None, "needed": [0, 0, end]}} for end in (0.0, False)),
    *({"budget": {"max_tokens": None, "needed": [first, 0, 0]}} for first in (None, "x", 0.5)),
    *({"rules": [{"edges": [EDGE], "accepting": found, "slots": []}]} for found in ("1", [1.0], {"1": 1}, [True])),
    {"rules": [{"edges": [[0, 0, 1, [], [[2, 0]], -1, -1]], "accepting": [1], "slots": [-1]}]},
    {"rules": [{"edges": [[0, 0, 1, [], [], -2, -1]], "accepting": [1], "slots": [-1]}]},
    {"rules": [{"edges": [[0, 0, 1, [], [], 0, -1]], "accepting": [1], "slots": [-2]}]},
    {"rules": [{"edges": [[0, 0, 1, [], [], -1, 0]], "accepting": [1], "slots": [-1]}]},
    {"rules": [{"edges": [[0, 0, 1, [], [[1, 0]], -1, -1]], "accepting": [1], "slots": [-2]}]},
    {"rules": [{"edges": [[0, 0, 1, {}, [], -1, -1]], "accepting": [1], "slots": []}]},
    *({"terminals": [{"expression": 0, "role": role}]} for role in (6, -1, None, True, "1")),
    *({"terminals": [{"expression": found}]} for found in (-1, 0.0, False, None)),
    *({"numbers_by_double": value} for value in (None, 0, [])),
)
def test_values_of_another_type_are_refused(changed: dict[str, Any]) -> None:
    constrain.certificates.verify_certificate(of_word())
    with pytest.raises(ValueError, match=r"^(\w+: number \d is malformed$|step 0 of the derivation, at byte 2: )"):
        constrain.certificates.verify_certificate(of_word(**changed))


def test_huge_scales_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="does not match"):
        constrain.certificates.verify_certificate(of_word([["multiple", 7, 10**12]]))
    digits = of_word([["multiple", 2**14000, 14000]], [[10, "1"]], text="1", derivation=[[0, 1], -1])
    constrain.certificates.verify_certificate(digits)


def test_a_pattern_may_be_nested_as_deep_as_the_compiler_allows() -> None:
    pattern = "c"
    for _ in range(MAX_PATTERN_NESTING):
        pattern = f"({pattern}a)?"
    constraint = constrain.compile({"type": "string", "pattern": f"^{pattern}$"}, byte_vocabulary())
    text = '"c' + "a" * MAX_PATTERN_NESTING + '"'
    constrain.certificates.verify_certificate(json.loads(canonical(certify(constraint, list(text.encode())))))


@pytest.mark.slow
def test_expressions_that_are_nested_without_end_are_refused() -> None:
    deep: list[Any] = [["literal", ["ab"]], *(["all", [number]] for number in range(10_000))]
    with pytest.raises(ValueError, match="recursion"):
        constrain.certificates.verify_certificate(of_word(deep))


def test_numbers_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        constrain.certificates.verify_certificate(of_word(claim=float("inf")))


@pytest.mark.parametrize("arguments", [[], ["0" * 64]])
def test_no_file_is_not_a_file_that_holds(arguments: list[str]) -> None:
    assert verifier.main(arguments) == 1


def test_the_hash_of_the_certificate_before_stands_in_front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.json").write_text(canonical(of_word()))
    Path("bad.json").write_text(canonical({**of_word(), "text": "ac"}))
    Path("0" * 64).write_text(canonical(of_word()))
    assert verifier.main(["good.json"]) == 0
    assert verifier.main(["bad.json", "0" * 64]) == 1


def test_a_certificate_inside_a_certificate_is_a_claim(tmp_path: Path) -> None:
    (tmp_path / "inside.json").write_text(canonical({**of_word(), "text": "evil", "certificate": of_word()}))
    (tmp_path / "claim.json").write_text(canonical(of_word(certificate="a claim")))
    assert verifier.main([str(tmp_path / "inside.json")]) == 1
    assert verifier.main([str(tmp_path / "claim.json")]) == 0


def test_malformed_certificates_are_value_errors() -> None:
    good = made('{"n": 1, "s": "x"}')
    for name in good:
        broken = sealed({each: value for each, value in good.items() if each != "source"}, **{name: None})
        if name not in ("sha256", "grammar_sha256", "source", "previous"):
            with pytest.raises(
                ValueError, match=rf"^{name}: number 0 is malformed$|^the certificate is malformed|^the format is"
            ):
                constrain.certificates.verify_certificate(broken)
    with pytest.raises(ValueError, match="malformed"):
        constrain.certificates.verify_certificate({})


@pytest.mark.slow
def test_changes_are_refused() -> None:
    good = made('{"n": 1, "s": "abc"}')
    constrain.certificates.verify_certificate(good)
    with pytest.raises(ValueError, match="the hash of the certificate does not agree"):
        constrain.certificates.verify_certificate({**good, "text": '{"n": 2, "s": "abc"}'})
    with pytest.raises(ValueError, match="the tokens spell another text"):
        constrain.certificates.verify_certificate(sealed(good, text='{"n": 2, "s": "abc"}'))
    body = {name: value for name, value in good.items() if name != "sha256"} | {"grammar_sha256": "0" * 64}
    with pytest.raises(ValueError, match="the hash of the grammar does not agree"):
        constrain.certificates.verify_certificate({**body, "sha256": digest(body)})
    steps = good["derivation"]
    for number in range(len(steps)):
        for changed in (steps[:number] + steps[number + 1 :], steps[: number + 1] + steps[number:]):
            with pytest.raises(ValueError, match="of the derivation"):
                constrain.certificates.verify_certificate(sealed(good, derivation=changed))


@for_each(
    "limit, needed, holds",
    (18, [], True),
    (17, [], False),
    (None, [], True),
    (None, [0] * 19, True),
    (None, [0] * 18, False),
    (18, [*range(18, -1, -1)], True),
    (18, [*range(19, 0, -1), 0], False),
    (17, [0] * 19, False),
    (None, [0] * 18 + [1], False),
)
def test_budgets(limit: int | None, needed: list[int], holds: bool) -> None:
    certificate = sealed(made('{"n": 1, "s": "x"}'), budget={"max_tokens": limit, "needed": needed})
    if holds:
        constrain.certificates.verify_certificate(certificate)
    else:
        with pytest.raises(ValueError, match="budget of"):
            constrain.certificates.verify_certificate(certificate)


def test_the_schema_is_asked_too() -> None:
    good = made('{"n": 0.07, "s": "x"}')
    assert verifier.judge(good) == "jsonschema agrees"
    other = {**good["source"], "text": json.dumps({**SCHEMA, "required": ["other"]})}
    with pytest.raises(ValueError, match=r"jsonschema refuses the text: .*'other' is a required property"):
        verifier.judge(sealed(good, source=other))
    assert verifier.judge({**good, "source": {"kind": "lark"}}) == "not judged by jsonschema"
    broken = {**good["source"], "text": '{"$ref": "https://example.com/none"}'}
    assert verifier.judge({**good, "source": broken}).startswith("not judged by jsonschema: ")


@pytest.mark.slow
def test_canonical_json_is_the_same_in_all_processes() -> None:
    program = (
        "import json, constrain; from constrain.certificates.certificate import canonical, certify;"
        "from tests.support import byte_vocabulary;"
        "schema = {'type': 'object', 'additionalProperties': {'enum': ['a', 'b', 1, 2.5, None]},"
        " 'patternProperties': {'^x': {'type': 'array', 'uniqueItems': True}}, 'minProperties': 1};"
        "text = json.dumps({'k': 2.5, 'xa': [1, 2]}).encode();"
        "print(canonical(certify(constrain.compile(schema, byte_vocabulary(), cache=False), list(text))))"
    )
    found = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
        )
        found.add(done.stdout)
    (text,) = found
    constrain.certificates.verify_certificate(json.loads(text))


THINK = constrain.Vocabulary.from_tokens(
    [bytes([byte]) for byte in range(256)] + [b""] * 3, eos=[256], special={257: "<think>", 258: "</think>"}
)


def thought(*tokens: int) -> dict[str, Any]:
    """The certificate of a text between two special tokens."""
    constraint = constrain.compile(constrain.Lark("start: <think> /[a-z]+/ </think>"), THINK, cache=False)
    found: dict[str, Any] = json.loads(canonical(certify(constraint, [257, *tokens, 258])))
    return found


@pytest.mark.parametrize(
    "hidden", [[[257, {"hex": "ff"}], [258, {"hex": "fe"}]], [[257, {"hex": "ff61"}], [258, {"hex": "62fe"}]]]
)
def test_no_text_is_hidden_between_ordinary_tokens_that_spell_a_special_one(hidden: list[Any]) -> None:
    good = thought(*b"evil")
    assert good["text"] == "evil"
    constrain.certificates.verify_certificate(good)
    tokens = [hidden[0], *good["tokens"][1:-1], hidden[1]]
    ends = [len(verifier.data(hidden[0][1]))]
    ends += [ends[0] + 4, ends[0] + 4 + len(verifier.data(hidden[1][1]))]
    steps = [[step[0], ends.pop(0)] if isinstance(step, list) else step for step in good["derivation"]]
    forged = sealed(good, tokens=tokens, derivation=steps)
    for text in ("", "evil", good["text"]):
        with pytest.raises(ValueError, match="the tokens spell another text"):
            constrain.certificates.verify_certificate({**sealed(forged, text=text)})
    shown = b"".join(verifier.data(text) for _, text, *_ in tokens)
    constrain.certificates.verify_certificate(
        sealed(forged, text={"hex": shown.hex()})
    )  # nothing is hidden; tokens are claims


def test_the_bytes_of_ordinary_tokens_are_text_whatever_they_are() -> None:
    constraint = constrain.compile(constrain.Lark('start: "a" <[255]> "b" <[254]>'), THINK, cache=False)
    found = certify(constraint, [97, 255, 98, 254])
    assert found["text"] == {"hex": "61ff62fe"}
    constrain.certificates.verify_certificate(found)


@pytest.mark.parametrize("other", [[97, "b"], [97, "", "a"], [97, {"hex": "6161"}]], ids=json.dumps)
def test_a_token_has_one_text(other: list[Any]) -> None:
    good = thought(*b"aa")
    with pytest.raises(ValueError, match=r"token \d has another text elsewhere"):
        constrain.certificates.verify_certificate(sealed(good, tokens=[*good["tokens"][:2], other, good["tokens"][3]]))


def test_the_hash_of_the_source_must_agree() -> None:
    good = made('{"n": 1, "s": "x"}')
    source = {**good["source"], "sha256": digest(good["source"])}
    constrain.certificates.verify_certificate(sealed(good, source=source))
    for wrong in ({**source, "text": "{}"}, {**source, "sha256": "0" * 64}):
        with pytest.raises(ValueError, match="the hash of the source does not agree"):
            constrain.certificates.verify_certificate(sealed(good, source=wrong))


def test_a_certificate_stands_behind_the_one_that_it_names() -> None:
    first = of_word()
    second = of_word(previous=first["sha256"])
    assert constrain.certificates.verify_certificate(second, previous=first["sha256"]) == second["sha256"]
    constrain.certificates.verify_certificate(first, previous=second["sha256"])  # it begins a chain of its own
    for before in (None, second["sha256"], ""):
        with pytest.raises(ValueError, match="names another certificate before it"):
            constrain.certificates.verify_certificate(second, previous=before)
    with pytest.raises(ValueError, match="previous: number 0 is malformed"):
        constrain.certificates.verify_certificate(of_word(previous=5), previous=5)  # type: ignore[arg-type]


ANY: list[Any] = ["class", [[0, 0x10FFFF]], "json"]
LONG_MATCHES: dict[str, list[Any]] = {
    "string": [["literal", ['"']], ANY, ["repeat", 1, 0, None], ["all", [0, 2, 0]]],
    "not": [["literal", ["b"]], ANY, ["repeat", 1, 0, None], ["all", [2, 0, 2]], ["not", 3]],
    "pattern": [["literal", ["aaaa"]], ANY, ["repeat", 1, 0, None], ["all", [2, 0, 2, 0, 2]], ["both", [3, 2]]],
    "count": [ANY, ["repeat", 0, 5, 10**6]],
    "window": [ANY, ["repeat", 0, 0, None], ["window", 1, 0, 5, 10**6]],
    "number": [["multiple", 7, 2]],
    "substring": [["substring", ["ab" * 3, "aa"], 0, None, "json", []], ["repeat", 0, 0, None]],
}


@pytest.mark.parametrize("name", LONG_MATCHES)
def test_work_grows_as_long_texts_do(name: str) -> None:
    nodes = LONG_MATCHES[name]
    piece, ends = (b"7", b"") if name == "number" else (b"a", b'"' if name == "string" else b"")
    work = []
    for length in (700, 2_800):
        match, text = verifier.Match(nodes), ends + piece * length + ends
        assert [*match.ends(len(nodes) - 1, text)][-1:] == [len(text)]
        work.append(match.work)
    assert work[1] <= 4.5 * work[0]


def test_work_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "MOST_WORK", 1_000)
    with pytest.raises(ValueError, match="a lexeme takes too many steps"):
        list(verifier.Match([ANY, ["repeat", 0, 0, 10**6]]).ends(1, b"a" * 2_000))


def test_forgotten_states_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "MOST_KNOWN", 3)
    nodes = LONG_MATCHES["pattern"]
    assert [*verifier.Match(nodes).ends(4, b"xaaaayaaaaaz")] == [10, 11, 12]


SEARCHES = [  # pattern, texts in which it is found, others
    (r"^\d$", ["1"], ["٣", "1\n", "a"]),
    (r"^\w+$", ["a_1"], ["é", "ſ", "a\n"]),
    (r"^[^\w]$", ["é", "-"], ["a"]),
    (r"^\W\D$", ["é٣"], ["a1"]),
    (r"^\s$", [" ", "\ufeff", "\u2029", "\xa0"], ["\x1c", "\x85", "\u180e", "x"]),
    (r"^[\S]$", ["\x1c", "\u180e", "x", "\U0001f600"], [" ", "\ufeff", "\u3000"]),
    (r"^[-\s]$", ["-", "\u2003"], ["a"]),
    (r"^.$", ["a", "\x85"], ["\n", "\r", "\u2028"]),
    (r"^[.$]$", [".", "$"], ["a"]),
    (r"^\.\$$", [".$"], ["a$"]),
    (r"[]", [], ["", "a"]),
    (r"^[^]$", ["\n", "]"], [""]),
    (r"^[]]?a]?$", [], ["a"]),
    (r"^[[&|~]$", ["[", "&", "|", "~"], ["a"]),
    (r"\bé", ["aé"], ["é", "éé"]),
    (r"^\B$", [""], ["a"]),
    (r"^{a}]$", ["{a}]"], ["a"]),
    (r"^\/\-\u00e9\x41\t[\b]$", ["/-éA\t\b"], ["/-éA\tb"]),
    (r"^(?:a|b){2,3}(?=c)(?!d)", ["abc"], ["abd", "ac"]),
]


@for_each("pattern, found, others", SEARCHES)
def test_patterns_are_those_of_ecma(pattern: str, found: list[str], others: list[str]) -> None:
    for text in found:
        assert verifier.search(pattern, text), text
    for text in others:
        assert not verifier.search(pattern, text), text


@for_each(
    "pattern",
    *(r"\p{L}", "a{,2}", r"(?<n>a)", "(?i:a)", r"[\s-a]", r"[a-\s]", r"[\d-z]", r"\ud83d\ude00", r"\cA", "[+--]"),
    r"(?<=a|bc)d",
)
def test_patterns_that_python_cannot_say_are_not_judged(pattern: str) -> None:
    with pytest.raises((ValueError, re.error)):
        verifier.search(pattern, "a")
    source = {"kind": "json_schema", "text": json.dumps({"not": {"pattern": pattern}})}
    assert verifier.judge({"source": source, "text": '"a"'}).startswith("not judged by jsonschema: ")


@for_each(
    "schema, text",
    ({"pattern": r"^\W$"}, '"é"'),
    ({"not": {"pattern": r"^a$"}}, r'"a\n"'),
    ({"propertyNames": {"pattern": r"^\D$"}}, '{"٣": 1}'),
    ({"patternProperties": {r"^\W$": {}, "^b": {}}, "additionalProperties": False}, '{"é": 1}'),
    ({"patternProperties": {r"\d$": {"const": 0}}, "additionalProperties": {"const": 1}}, r'{"٣": 1, "3\n": 1}'),
    ({"patternProperties": {r"^\W$": {}}, "unevaluatedProperties": False}, '{"é": 1}'),
    ({"$schema": "http://json-schema.org/draft-04/schema#", "pattern": r"^\W$"}, '"é"'),
)
@for_each("spelling", ["text", "hex"])
def test_the_schema_is_asked_with_patterns_of_ecma(schema: dict[str, Any], text: str, spelling: str) -> None:
    about: Any = text if spelling == "text" else {"hex": text.encode().hex()}
    source = {"kind": "json_schema", "text": json.dumps(schema)}
    assert verifier.judge({"source": source, "text": about}) == "jsonschema agrees"
    wrong = {"kind": "json_schema", "text": json.dumps({"not": schema})}
    with pytest.raises(ValueError, match="jsonschema refuses the text"):
        verifier.judge({"source": wrong, "text": about})
    assert re.search.__module__ == "re"  # as before


EXPRESSIONS = 100_000 if LONG else 100
PIECES = (b"a", b"b", b"\xc3", b"\xa9", "é".encode(), b'"', b'\\"', b"\\", b"n", b"1", b"15", b"-", b".", b"0", b"\xff")
_DECIMAL = re.compile(rb"-?([0-9]+)(?:\.([0-9]+))?")
_SPELLED = re.compile(rb'(?:\\["\\bn]|\\u0001|[^\x00-\x1f"\\])*')
_ESCAPES = {b"b": b"\b", b"n": b"\n", b"u0001": b"\x01"}


def characters(piece: bytes, how: str) -> list[int] | None:
    """Returns the code points that a piece spells; None if it is not made of whole characters."""
    if how == "byte":
        return list(piece)
    if how == "json":
        if _SPELLED.fullmatch(piece) is None:
            return None
        piece = re.sub(rb"\\(u0001|.)", lambda found: _ESCAPES.get(found[1], found[1]), piece)
    try:
        return list(map(ord, piece.decode()))
    except UnicodeDecodeError:
        return None


class Reader:
    """The second reader: expressions, and one text."""

    def __init__(self, nodes: list[Any], text: bytes) -> None:
        self.nodes, self.text = nodes, text
        self.known: dict[tuple[int, int, int], bool] = {}

    def matches(self, number: int, begin: int, end: int) -> bool:
        """Returns whether an expression matches the piece between two offsets."""
        if (found := self.known.get((number, begin, end))) is None:
            kind, *of = self.nodes[number]
            found = self.known[number, begin, end] = bool(getattr(self, f"_{kind}")(begin, end, *of))
        return found

    def _literal(self, begin: int, end: int, texts: list[str]) -> bool:
        return self.text[begin:end] in map(data, texts)

    def _class(self, begin: int, end: int, ranges: list[list[int]], how: str) -> bool:
        found = characters(self.text[begin:end], how) or []
        return len(found) == 1 and any(low <= found[0] <= high for low, high in ranges)

    def _all(self, begin: int, end: int, parts: list[int]) -> bool:
        places = {begin}
        for part in parts:
            places = {after for at in places for after in range(at, end + 1) if self.matches(part, at, after)}
        return end in places

    def _any(self, begin: int, end: int, parts: list[int]) -> bool:
        return any(self.matches(part, begin, end) for part in parts)

    def _both(self, begin: int, end: int, parts: list[int]) -> bool:
        return all(self.matches(part, begin, end) for part in parts)

    def _not(self, begin: int, end: int, part: int) -> bool:
        return not self.matches(part, begin, end)

    def _repeat(self, begin: int, end: int, part: int, least: int, most: int | None) -> bool:
        if most is not None and most < least:
            return False
        if begin == end and (least == 0 or self.matches(part, begin, begin)):
            return True
        left = max(0, least - 1), None if most is None else most - 1
        return most != 0 and any(
            self.matches(part, begin, at) and self._repeat(at, end, part, *left) for at in range(begin + 1, end + 1)
        )

    def _multiple(self, begin: int, end: int, divisor: int, scale: int) -> bool:
        if (read := _DECIMAL.fullmatch(self.text, begin, end)) is None:
            return False
        decimals = read[2] or b""
        return bool(int(read[1] + decimals) * 10**scale % (divisor * 10 ** len(decimals)) == 0)

    def _window(self, begin: int, end: int, part: int, unit: int, least: int, most: int | None) -> bool:
        count, at = 0, begin
        while after := next((place for place in range(at + 1, end + 1) if self.matches(unit, at, place)), 0):
            at, count = after, count + 1
        return self.matches(part, begin, end) and least <= count and (most is None or count <= most)

    def _substring(
        self, begin: int, end: int, texts: list[str], least: int, most: int | None, how: str, cuts: list[str]
    ) -> bool:
        run = characters(self.text[begin:end], how)
        if run is None or len(run) < least or (most is not None and len(run) > most):
            return False
        for which, text in enumerate(texts):
            marks = cuts[which] + "1" if cuts else "1" * (len(text) + 1)
            for at in range(len(text) - len(run) + 1):
                is_run = list(map(ord, text[at : at + len(run)])) == run
                if is_run and marks[at] == marks[at + len(run)] == "1":
                    return True
        return not run


def leaf(rng: Random) -> list[Any]:
    """Returns a random expression without others."""
    how, most = rng.choice(("char", "json")), rng.choice((None, 0, 1, 2, 3))
    kind = rng.choice(("literal", "class", "class", "multiple", "substring"))
    if kind == "literal":
        return [kind, rng.sample(("", "a", "ab", "bab", "é", "1", "1.5", '\\"'), rng.randrange(3))]
    if kind == "class":
        ranges = [sorted(ord(each) for each in rng.choices('abé"\n1-.', k=2)) for _ in range(rng.randrange(1, 3))]
        return [kind, ranges, rng.choice((how, "byte"))]
    if kind == "multiple":
        return [kind, rng.choice((1, 2, 3, 15, 125)), rng.randrange(4)]
    texts = rng.sample(("abab", 'a"b', "é1", "aa", ""), 2)
    cuts = ["".join(rng.choice("01") for _ in text) for text in texts] if rng.random() < 0.5 else []
    return [kind, texts, rng.randrange(3), most, how, cuts]


def drawn(rng: Random) -> list[Any]:
    """Returns random expressions, each made of those before it."""
    nodes = [leaf(rng), leaf(rng)]
    for number in range(2, rng.randrange(3, 9)):
        kind, most = rng.choice(("leaf", "all", "any", "both", "not", "repeat")), rng.choice((None, 0, 1, 2, 3))
        parts = [rng.randrange(number) for _ in range(rng.randrange(1, 4))]
        outer = {"not": [kind, parts[0]], "repeat": [kind, parts[0], rng.randrange(4), most], "leaf": leaf(rng)}
        nodes.append(outer.get(kind, [kind, parts]))
    if rng.random() < 0.3:
        unit = ["class", [[rng.choice((0, 97)), 0x10FFFF]], rng.choice(("byte", "char", "json"))]
        nodes += [unit, ["window", len(nodes) - 1, len(nodes), rng.randrange(3), rng.choice((None, 0, 1, 2, 3))]]
    return nodes


def test_matches_are_those_of_the_second_reader() -> None:
    rng, count = Random(7), 0
    for _ in range(EXPRESSIONS):
        nodes = drawn(rng)
        match, last = Match(nodes), len(nodes) - 1
        for _ in range(3):
            text = b"".join(rng.choices(PIECES, k=rng.randrange(1, 6)))
            second = Reader(nodes, text)
            wanted = [end for end in range(1, len(text) + 1) if second.matches(last, 0, end)]
            assert list(match.ends(last, text)) == wanted, (nodes, text)
            count += len(wanted)
    assert count > EXPRESSIONS / 4


@for_each("scale", [0, 1, 2])
@for_each("divisor", [1, 2, 7, 25])
def test_multiples_are_those_of_integers(divisor: int, scale: int) -> None:
    nodes = [["multiple", divisor, scale]]
    match = Match(nodes)
    for text in (b"0", b"-0", b"07", b"14", b"-14.0", b"2.5", b"0.25", b"0.070", b"1.", b".5", b"-", b"1.250", b"7.00"):
        second = Reader(nodes, text)
        assert list(match.ends(0, text)) == [e for e in range(1, len(text) + 1) if second.matches(0, 0, e)], text
