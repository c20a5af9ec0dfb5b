"""The formats idn-hostname and idn-email: independent validators judge, over names made to hit their rules."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import unicodedata
from functools import cache

import idna
import jsonschema_rs
import pytest
from jsonschema import Draft202012Validator

import constrain
from constrain.json_schema.formats.idn import expressions as idn_formats
from constrain.json_schema.formats.idn.tables import compositions, valid_code_points
from tests.support import LONG, byte_vocabulary, data_folder
from tests.support.json_schema.punycode_bounds import longest_label

NAMES = (
    *("münchen.de", "straße.example", "bundesministerium-für-gesundheit.de", "пример.испытание", "παράδειγμα.δοκιμή"),
    *(
        "例え.テスト",
        "例子.测试",
        "ソニー・ミュージック.jp",
        "실례.테스트",
        "مثال.إختبار",
        "www.دامنه‌ها.com",
        "דוגמה.טעסט",
        "उदाहरण.परीक्षा",
    ),
    *("हिन्दी.भारत", "বাংলা.ভারত", "உதாரணம்.பரிட்சை", "ශ්‍රී.ලංකා", "รู้ที่.ไทย", "მაგალითი.გე", "օրինակ.հայ"),
    "l·l.cat",
)

DRAFTS = ("draft2020-12", "draft2019-09", "draft7")

NOT_WRITTEN = {
    "valid Chinese Punycode": "A-labels are not",
    "ideographic full stop as label separator": "the separator is a full stop",
    "fullwidth full stop as label separator": "the separator is a full stop",
    "halfwidth ideographic full stop as label separator": "the separator is a full stop",
    "label too long if separator ignored (full stop)": "beyond MAX_LENGTH_OF_ONE_BLOCK",
    "label too long if separator ignored (ideographic full stop)": "beyond MAX_LENGTH_OF_ONE_BLOCK",
    "label too long if separator ignored (fullwidth full stop)": "beyond MAX_LENGTH_OF_ONE_BLOCK",
    "label too long if separator ignored (halfwidth ideographic full stop)": "beyond MAX_LENGTH_OF_ONE_BLOCK",
    "a domain label that is not in Unicode NFC is valid": "other validators do not allow it",
}
"""Valid names of the official suite, and why they are not written."""

UNCERTAIN = {
    "invalid Punycode": "Punycode is not regular",
    'U-label contains "--" in the 3rd and 4th position': "Punycode is not regular",
    "Bidi domain name with a digit-first label is invalid": "idna judges label by label",
    "A-label that decodes to a disallowed code point is invalid": "Punycode is not regular",
    "A-label that decodes to a Bidi rule violation is invalid": "Punycode is not regular",
    "non-canonical Punycode that does not re-encode to itself is invalid": "Punycode is not regular",
    "trailing dot": "idna allows it",
    "trailing ideographic full stop": "idna allows it",
    "trailing fullwidth full stop": "idna allows it",
    "trailing halfwidth ideographic full stop": "idna allows it",
}
"""Invalid names of the official suite that not all validators may tell, and why."""


@cache
def _written(name: str) -> constrain.Constraint:
    return constrain.compile({"type": "string", "format": name}, byte_vocabulary())


@cache
def _surely_not(name: str) -> constrain.Constraint:
    return constrain.compile({"type": "string", "not": {"format": name}}, byte_vocabulary())


def _writes(name: str, text: str) -> bool:
    return _written(name).accepts(json.dumps(text, ensure_ascii=False))


def _may_be(name: str, text: str) -> bool:
    return not _surely_not(name).accepts(json.dumps(text, ensure_ascii=False))


def _encodes(text: str) -> bool:
    try:
        idna.encode(text, uts46=False)
    except UnicodeError:
        return False
    return True


@cache
def _judge(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({"format": name}, validate_formats=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_names_of_many_scripts_are_written(name: str) -> None:
    assert _encodes(name)
    assert _judge("idn-hostname").is_valid(name)
    assert _writes("idn-hostname", name)
    assert _may_be("idn-hostname", name)
    assert _writes("idn-email", f"δοκιμή@{name}")
    assert _may_be("idn-email", f"δοκιμή@{name}")


@pytest.mark.slow
@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("name", ["idn-hostname", "idn-email"])
def test_official_suite(name: str, draft: str) -> None:
    path = data_folder() / "json-schema-test-suite" / "tests" / draft / "optional" / "format" / f"{name}.json"
    written = constrain.compile({"format": name}, byte_vocabulary())
    negated = constrain.compile({"not": {"format": name}}, byte_vocabulary())
    wrong = []
    for group in json.loads(path.read_text()):
        for test in group["tests"]:
            if not isinstance(test["data"], str):
                continue
            text, said = json.dumps(test["data"], ensure_ascii=False), test["description"]
            if written.accepts(text) != (test["valid"] and said not in NOT_WRITTEN):
                wrong.append(("written", said))
            if negated.accepts(text) == (test["valid"] or said in UNCERTAIN):
                wrong.append(("negated", said))
    assert wrong == []


def _pools() -> list[list[int]]:
    valid = [code for first, last in valid_code_points() for code in range(max(first, 0x80), min(last, 0xFFFF) + 1)]
    letters = [code for code in valid if code < 0x3400]
    leads, trails = compositions()
    blocks = [[code for code in letters if start <= code < start + 0x100] for start in range(0x80, 0x3400, 0x80)]
    return [
        list(map(ord, "abcdelxyz0129--")),
        *(block for block in blocks if len(block) > 8),
        sorted(leads.intersection(valid)),
        sorted(trails.intersection(valid)),
        [code for code in letters if unicodedata.category(chr(code))[0] == "M"],
        list(map(ord, "\u200c\u200d·͵׳・٠۰l\u094d")),
        list(map(ord, "AZÜ\u00adｅﬁ☃\u0378。_ \U0001e900\U00020000")),
        valid,
    ]


def _label(rng: random.Random, pools: list[list[int]]) -> str:
    chosen = rng.choices(pools, k=rng.choice((1, 2, 3)))
    length = rng.choice((1, 2, 3, 4, 5, 6, 8, 12, 14, 15, 18, 22, 23, 44))
    return "".join(chr(rng.choice(rng.choice(chosen))) for _ in range(length))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12 if LONG else 1))
def test_what_is_written_is_valid_and_what_is_valid_may_be(seed: int) -> None:
    rng, pools = random.Random(seed), _pools()
    checker = Draft202012Validator({"format": "idn-hostname"}, format_checker=Draft202012Validator.FORMAT_CHECKER)
    judge = _judge("idn-hostname")
    n_written = n_valid = 0
    wrong = []
    for _ in range(3_000 if LONG else 500):
        name = ".".join(_label(rng, pools) for _ in range(rng.choice((1, 1, 1, 2, 4))))
        certain = _encodes(name) and judge.is_valid(name) and checker.is_valid(name)
        possible = _encodes(name) or judge.is_valid(name) or checker.is_valid(name)
        written = _writes("idn-hostname", name)
        if (written and not certain) or (possible and not _may_be("idn-hostname", name)):
            wrong.append((name, written))
        n_written += written
        n_valid += certain
    assert wrong == []
    assert n_written > n_valid / 3 > 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10 if LONG else 1))
def test_walks_end_in_valid_names(seed: int) -> None:
    vocabulary = byte_vocabulary()
    constraint = constrain.compile({"type": "string", "format": "idn-hostname"}, vocabulary)
    rng = random.Random(seed)
    row = constraint.allocate_bitmask()[0]
    for _ in range(60):
        matcher, text = constraint.matcher(), b""
        while not matcher.is_finished and not (matcher.is_accepting and text):
            matcher.fill_bitmask(row)
            allowed = [token for token in range(vocabulary.n_vocab) if row[token >> 5] >> (token & 31) & 1]
            quote = [token for token in allowed if vocabulary.token_bytes(token) == b'"']
            token = quote[0] if quote and text and rng.random() < 0.1 else rng.choice(allowed)
            assert matcher.accept(token)
            text += vocabulary.token_bytes(token)
        name = json.loads(text)
        assert _encodes(name), ascii(name)
        assert _judge("idn-hostname").is_valid(name), ascii(name)


def test_a_code_point_that_may_be_valid_is_in_the_definition() -> None:
    judge, rng = _judge("idn-hostname"), random.Random(7)
    codes = range(0x80, 0xE0200) if LONG else sorted(rng.sample(range(0x80, 0x33500), 2_000))
    names = (
        name
        for code in codes
        if not 0xD800 <= code < 0xE000
        for name in (chr(code), f"a{chr(code)}a", f"א{chr(code)}א")
    )
    possible = [name for name in names if judge.is_valid(name) or _encodes(name)]
    assert len(possible) > 500
    assert [name for name in possible if not _may_be("idn-hostname", name)] == []


def test_emails_agree_with_another_validator() -> None:
    rng, judge, wrong, n_written = random.Random(11), _judge("idn-email"), [], 0
    for _ in range(1_000):
        local = "".join(rng.choices('aé例.\U0001d54f"\\ @\u0085\t', k=rng.randrange(1, 6)))
        if rng.random() < 0.5:
            local = f'"{local}"'
        host = rng.choice(("a.b", "münchen.de", "É.de", "[1.2.3.4]", "[IPv6:::1]", "ü-", "xn--X", "例え.テスト"))
        text = f"{local}@{host}"
        written = _writes("idn-email", text)
        if (written and not judge.is_valid(text)) or (judge.is_valid(text) and not _may_be("idn-email", text)):
            wrong.append(text)
        n_written += written
    assert wrong == []
    assert n_written > 60


def test_the_local_part_has_64_octets() -> None:
    assert _writes("idn-email", "é" * 32 + "@a.b")
    assert not _writes("idn-email", "é" * 33 + "@a.b")
    assert _may_be("idn-email", "é" * 33 + "@a.b")


def test_labels_are_as_long_as_the_bounds_allow() -> None:
    """The bounds are those for which the longest Punycode was computed: see the next test."""
    scripts = "ñбγბձñбγბձñбγბձñбγბձ"  # letters of several blocks
    for most, label in (
        (14, lambda length: scripts[:length]),
        (22, lambda length: "б" * length),
        (44, lambda length: "éñü" + "a" * (length - 3)),
        (14, lambda length: "éбγձ" + "a" * (length - 4)),
    ):
        assert _encodes(label(most))
        assert _writes("idn-hostname", label(most))
        assert not _writes("idn-hostname", label(most + 1))


@pytest.mark.long
def test_bounds_on_code_points_suffice_for_punycode() -> None:
    octets = idn_formats.MAX_LABEL_OCTETS
    assert longest_label(0xFFFF, length=idn_formats.MAX_LENGTH) <= octets
    assert longest_label(0xFFFF, length=idn_formats.MAX_LENGTH_WITH_FEW, others=idn_formats.MAX_FEW) <= octets
    greatest = max(last for _, last in idn_formats.BLOCKS)
    span = max(last - first for first, last in idn_formats.BLOCKS)
    assert longest_label(greatest, length=idn_formats.MAX_LENGTH_OF_ONE_BLOCK, span=span) <= octets
    assert idn_formats.MAX_LABELS * (octets + 1) - 1 <= 253


@pytest.mark.slow
def test_the_tables_are_loaded_when_a_schema_names_such_a_format() -> None:
    code = (
        "import sys; from constrain.json_schema.compiler import compile_schema;"
        "compile_schema({'format': 'hostname'}); assert 'idna' not in sys.modules;"
        "compile_schema({'format': 'idn-hostname'}); assert 'idna' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
