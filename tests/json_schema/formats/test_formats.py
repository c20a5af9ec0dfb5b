"""String formats: tables of valid and invalid strings, and Python's own types as judges of generated ones."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import random
import re
import uuid
import warnings
from pathlib import Path

import pytest
import regress
from pydantic import TypeAdapter

import constrain
from constrain import kernel
from constrain.json_schema.compiler import compile_schema
from constrain.json_schema.formats.definitions import format_definition
from constrain.json_schema.formats.expressions import INEXACT_FORMATS, KNOWN_FORMATS, LEFT_OUT, format_expression
from constrain.language.tree import Intersection, LiteralSet
from tests.support import LONG, Tokens, Walker, byte_vocabulary, check_each, for_each, tomllib
from tests.support.regex.derivative_matcher import matches

DATA = Path(__file__).parent / "data"


def table(name: str) -> dict[str, tuple[list[str], list[str]]]:
    """Accepted and rejected strings by format."""
    found = tomllib.loads((DATA / f"{name}.toml").read_text(encoding="utf-8"))
    return {format_: (texts["accepted"], texts["rejected"]) for format_, texts in found.items()}


CASES = table("formats")


def _accepts(name: str, text: str) -> bool:
    expression = format_expression(name)
    assert expression is not None
    return matches(expression, json.dumps(text, ensure_ascii=False)[1:-1].encode())


def test_every_known_format_has_cases() -> None:
    assert set(CASES) == KNOWN_FORMATS


@pytest.mark.slow
def test_formats_match_exactly() -> None:
    def check(name: str) -> None:
        accepted, rejected = CASES[name]
        assert [text for text in accepted if not _accepts(name, text)] == []
        assert [text for text in rejected if _accepts(name, text)] == []

    check_each(CASES, check)


@pytest.mark.parametrize("name", ["int32", ""])
def test_other_formats_are_unknown(name: str) -> None:
    assert format_expression(name) is None
    assert name not in KNOWN_FORMATS


def test_dates_agree_with_the_calendar() -> None:
    for year in (1, 4, 99, 100, 400, 1900, 1999, 2000, 2023, 2024, 2100, 9999):
        for month in range(14):
            for day in range(33):
                try:
                    dt.date(year, month, day)
                    valid = True
                except ValueError:
                    valid = False
                assert _accepts("date", f"{year:04}-{month:02}-{day:02}") == valid, (year, month, day)


def test_ipv6_agrees_with_ipaddress() -> None:
    rng = random.Random(3)
    valid = 0
    for _ in range(1_000):
        groups = rng.choices(["0", "1", "ab", "ffff", "", ""], k=rng.randrange(2, 10))
        text = ":".join(groups) + rng.choice(["", "", "", "::", ":1.2.3.4", "1.2.3.4"])
        try:
            ipaddress.IPv6Address(text)
        except ValueError:
            assert not _accepts("ipv6", text), text
        else:
            assert _accepts("ipv6", text), text
            valid += 1
    assert valid > 60


def test_addresses_and_uuids_in_pythons_spelling_are_accepted() -> None:
    rng = random.Random(5)
    for _ in range(100):
        assert _accepts("ipv4", str(ipaddress.IPv4Address(rng.getrandbits(32))))
        assert _accepts("ipv6", str(ipaddress.IPv6Address(rng.getrandbits(128) & rng.getrandbits(128))))
        assert _accepts("uuid", str(uuid.UUID(int=rng.getrandbits(128))))
        moment = dt.datetime(2000, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(
            seconds=rng.randrange(-(10**10), 10**10), microseconds=rng.randrange(2) * 123456
        )
        assert _accepts("date-time", moment.isoformat())


def test_the_longest_duration_fits_into_a_timedelta() -> None:
    longest = "P999999Y9999999M99999999DT999999H999999M99999999S"
    assert _accepts("duration", longest)
    days = 999_999 * 365 + 9_999_999 * 30 + 99_999_999
    span = dt.timedelta(days=days, hours=999_999, minutes=999_999, seconds=99_999_999)
    assert TypeAdapter(dt.timedelta).validate_json(f'"{longest}"') == span
    for extended in ("P1000000Y", "P10000000M", "P100000000D", "P100000000W", "PT1000000H", "PT100000000S"):
        assert not _accepts("duration", extended)


def test_trees_are_built_once() -> None:
    for name in KNOWN_FORMATS:
        assert format_expression(name) is format_expression(name)


WIDER_CASES = table("wider")


def test_every_wider_format_has_cases() -> None:
    assert set(WIDER_CASES) == LEFT_OUT.keys()


@pytest.mark.slow(only=("idn-email", "idn-hostname"))
@pytest.mark.parametrize("name", sorted(WIDER_CASES))
def test_a_definition_allows_more_than_is_written(name: str) -> None:
    definition, written = format_definition(name), format_expression(name)
    assert written is not None
    accepted, rejected = WIDER_CASES[name]
    assert [text for text in accepted if not kernel.matches(definition, text.encode())] == []
    assert [text for text in accepted if kernel.matches(written, text.encode())] == []
    assert [text for text in rejected if kernel.matches(definition, text.encode())] == []
    assert [
        text
        for text in CASES[name][0]
        if not kernel.matches(definition, json.dumps(text, ensure_ascii=False)[1:-1].encode())
    ] == []


def test_leap_seconds_are_those_of_the_last_minute_in_utc() -> None:
    rng = random.Random(13)
    leap = {}
    for _ in range(600):
        hour, minute, sign = rng.randrange(24), rng.randrange(60), rng.choice((1, -1))
        offset = sign * (hour * 60 + minute - 1439) % 1440 if rng.random() < 0.5 else rng.randrange(1440)
        utc = (hour * 60 + minute - sign * offset) % 1440
        text = f"{hour:02}:{minute:02}:60{'+' if sign > 0 else '-'}{offset // 60:02}:{offset % 60:02}"
        leap[text.encode()] = utc == 1439
    found = kernel.list_matches(Intersection((LiteralSet(tuple(leap)), format_definition("time"))), len(leap))
    assert sorted(found or ()) == sorted(text for text, is_leap in leap.items() if is_leap)
    assert len(found or ()) > 200


def _is_pattern(text: str) -> bool:
    """Returns whether ECMA-262 with and without the flag u, and Python's re, read a pattern."""
    try:
        regress.Regex(text, "u"), regress.Regex(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of "&&" in a class
            re.compile(text)
    except (regress.RegressError, re.error, OverflowError):
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20 if LONG else 1))
def test_others_read_every_pattern_that_is_written(seed: int) -> None:
    """Patterns from pieces that make mistakes likely; and random walks, which end in every construct."""
    rng = random.Random(seed)
    pieces = [
        *r"ab09zAZ^$\.*+?()[]{}|-,:=!<",
        *(r"\d", r"\b", r"\u", r"\x", "(?:", "(?=", "{1,", "{20,", "a-z", "[^", "\n"),
    ]
    expression = format_expression("regex")
    assert expression is not None
    texts = {"".join(rng.choices(pieces, k=rng.randrange(1, 9))) for _ in range(4_000 if LONG else 1_000)}
    written = [text for text in texts if kernel.matches(expression, json.dumps(text)[1:-1].encode())]
    assert [text for text in written if not _is_pattern(text)] == []
    valid = [text for text in texts if _is_pattern(text)]
    assert len(valid) > len(written) > len(valid) / 2
    definition = format_definition("regex")
    assert [text for text in valid if not kernel.matches(definition, json.dumps(text)[1:-1].encode())] == []
    vocabulary = byte_vocabulary()
    walker = Walker(constrain.compile({"format": "regex", "type": "string"}, vocabulary), vocabulary)
    tokens = Tokens(vocabulary)
    for _ in range(40 if LONG else 10):
        text = json.loads(walker.text(rng, tokens, rng.randrange(5, 60)))
        assert _is_pattern(text), text


@pytest.mark.parametrize("name", sorted(INEXACT_FORMATS))
def test_an_inexact_format_is_narrowed_and_told_or_refused(name: str) -> None:
    schema = {"properties": {key: {"type": "string", "format": name} for key in "ab"}}
    (warning,) = compile_schema(schema).warnings
    assert LEFT_OUT[name] in warning
    assert "/properties/a/format" in warning
    for policies in ({"inexact": "refuse"}, {"formats": "strict"}):
        with pytest.raises(constrain.UnsupportedSchemaError) as caught:
            compile_schema(schema, **policies)
        assert caught.value.pointer == "/properties/a/format"
    assert compile_schema(schema, formats="annotation", inexact="refuse").warnings == ()


@for_each("draft", ["draft-04/schema#", "draft-06/schema#", "draft-07/schema#", "draft/2019-09/schema"])
def test_known_formats_are_enforced_in_every_draft(draft: str) -> None:
    scheme = "http" if draft.startswith("draft-") else "https"
    for name in ("date", "uuid", "duration", "json-pointer"):
        schema = {"$schema": f"{scheme}://json-schema.org/{draft}", "type": "string", "format": name}
        assert compile_schema(schema).warnings == ()
        assert not constrain.compile(schema, byte_vocabulary()).accepts('"?"')
