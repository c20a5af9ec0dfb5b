"""String formats: tables of valid and invalid strings, and Python's own types as judges of generated ones."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import random
import re
import uuid
import warnings

import pytest
import regress
from pydantic import TypeAdapter

import constrain
from constrain.engine import core
from constrain.json_schema.compiler import compile_schema
from constrain.json_schema.formats.definitions import format_definition
from constrain.json_schema.formats.expressions import INEXACT_FORMATS, KNOWN_FORMATS, LEFT_OUT, format_expression
from constrain.language.tree import Intersection, LiteralSet
from tests.support import LONG, Tokens, Walker, byte_vocabulary
from tests.support.regex.derivative_matcher import matches

_LABEL_63 = "a" * 63

CASES: dict[str, tuple[list[str], list[str]]] = {
    "date": (
        ["2024-02-29", "2000-02-29", "0001-01-01", "9999-12-31", "2023-04-30", "0004-02-29"],
        [
            "2023-02-29",
            "1900-02-29",
            "0000-01-01",
            "2023-04-31",
            "2023-13-01",
            "2023-00-10",
            "2023-1-1",
            "20230101",
            "2023-01-32",
            "2023-01-00",
            "0000-02-29",
            "२०२३-01-01",
            "2023-01-01\n",
        ],
    ),
    "time": (
        ["23:59:59Z", "00:00:00z", "08:30:06.283185+01:00", "12:00:00-23:59", "12:00:00.1Z"],
        ["24:00:00Z", "23:60:00Z", "23:59:60Z", "12:00:00", "12:00:00+24:00", "12:00:00.Z", "1:00:00Z", "12:00Z"],
    ),
    "date-time": (
        ["1963-06-19T08:30:06.283185Z", "2024-02-29t00:00:00z", "1990-12-31T15:59:50.123-08:00"],
        ["1990-02-31T15:59:59Z", "1963-06-19 08:30:06Z", "1963-06-19T08:30:06", "2013-350T01:01:01", "2024-01-01"],
    ),
    "duration": (
        ["P4DT12H30M5S", "P1Y2M3DT4H5M6S", "PT0S", "P4Y", "PT1M", "P2W", "P1M", "PT36H"],
        ["P", "PT", "P1YT", "PT1D", "4DT12H", "P2D1Y", "P2S", "P1Y2W", "P1", "PT1H30S", "P1Y2D", "P-1D", "p1d"],
    ),
    "email": (
        [
            "joe.bloggs@example.com",
            "te~st@example.com",
            '"joe bloggs"@example.com',
            '"a\\"b"@x.org',
            "a@[127.0.0.1]",
            "a@[IPv6:::1]",
            "te.s.t@example.com",
            "l" * 64 + "@x.org",
        ],
        [
            "2962",
            ".test@example.com",
            "test.@example.com",
            "te..st@example.com",
            "a@in=valid.com",
            "a@[127.0.0.300]",
            "a@b@c",
            "@x.org",
            "a@",
            '"a"b"@x.org',
            "l" * 65 + "@x.org",
            "a@-x.org",
            "é@x.org",
        ],
    ),
    "hostname": (
        [
            "www.example.com",
            "localhost",
            "a",
            "1host",
            "h-o-st.x9",
            _LABEL_63,
            ".".join([_LABEL_63] * 3 + ["a" * 61]),
            "ab",
            "abc",
            "abcd",
            "a-b",
            "a--b",
            "ab-c",
            "a" * 62 + "b",
        ],
        [
            "",
            "-a",
            "a-",
            "a_b",
            "a..b",
            ".a",
            "a.",
            "a" * 64,
            ".".join([_LABEL_63] * 3 + ["a" * 62]),
            "ab--c",
            "xn--x",
            "a-.b",
            "a b",
            "é",
            "a" * 61 + "-.",
        ],
    ),
    "idn-email": (
        ["実例@例え.テスト", "joe.bloggs@example.com", '"é \\"é"@x.org', "é@[127.0.0.1]", "é" * 32 + "@x.org"],
        ["é", "é..é@x.org", "é@", "@é", "é" * 32 + "l@x.org", "é@É.org", "é＠x.org", "a@b@é", '"é"é"@x.org'],
    ),
    "idn-hostname": (
        ["münchen.de", "例え.テスト", "www.example.com", _LABEL_63, ".".join([_LABEL_63] * 3 + ["a" * 61])],
        ["", "München.de", "ü--ü", "-ü", "ü-", "ü..ü", "ü.", "a。b", "xn--x", "cafe\u0301", "☃", "ü" * 60, "a" * 64],
    ),
    "ipv4": (
        ["192.168.0.1", "0.0.0.0", "255.255.255.255", "1.20.199.249"],
        ["256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.04", "1.2.3.4 ", "1..2.3", "0x7f.0.0.1", "1٢.0.0.1"],
    ),
    "ipv6": (
        [
            "::",
            "::1",
            "1::",
            "1:2:3:4:5:6:7:8",
            "::2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7::",
            "1::3:4:5:6:7:8",
            "::ffff:1.2.3.4",
            "1:2:3:4:5:6:1.2.3.4",
            "1:2::3:1.2.3.4",
            "FE80::a",
            "1::1.2.3.4",
            "::1.2.3.4",
        ],
        [
            ":",
            ":::",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9",
            "12345::",
            "1::2::3",
            "::g",
            "1:2:3:4:5:6:7:1.2.3.4",
            "1:2:",
            ":2:3:4:5:6:7:8",
            "::1.2.3",
            "::1%eth0",
            "1.2.3.4::",
            "1:2:3:4::5:6:7:8",
            "::01.2.3.4",
        ],
    ),
    "uuid": (
        ["2EB8AA08-aa98-11ea-b4aa-73b441d16380", "00000000-0000-0000-0000-000000000000"],
        [
            "2eb8aa08aa9811eab4aa73b441d16380",
            "2eb8aa08-aa98-11ea-b4aa-73b441d1638",
            "2eb8aa08-aa98-11ea-b4ga-73b441d16380",
        ],
    ),
    "ipvanyaddress": (["127.0.0.1", "::1"], ["127.0.0.256", "localhost"]),
    **{
        f"uuid{version}": (
            [f"2EB8AA08-aa98-{version}1ea-b4aa-73b441d16380"],
            ["2eb8aa08-aa98-91ea-b4aa-73b441d16380", f"2eb8aa08-aa98-{version}1ea-c4aa-73b441d16380"],
        )
        for version in range(1, 9)
    },
    "uri": (
        [
            "http://foo.bar/?baz=qux#quux",
            "http://[2001:db8::7]:80/a",
            "ldap://[::1]/c=GB?objectClass?one",
            "urn:a:b",
            "a:",
            "mailto:John.Doe@example.com",
            "http://u:p%20q@h:8080",
            "file:///etc",
            "tel:+1-816-555-1212",
            "x:/",
            "v://[v1.a]",
        ],
        [
            "//foo.bar/",
            "/abs",
            "\\\\WINDOWS",
            "abc",
            "http:// x",
            ":// should fail",
            "bar,baz:foo",
            "http://a/%zz",
            "http://[::",
            "http://[1.2.3.4]/",
            "http://a:b",
            "http://é",
            "http://a/{x}",
            'http://a/"',
            "1a:b",
            "http://a/^",
            "a:#b#c",
        ],
    ),
    "uri-reference": (
        ["", "//foo.bar/?baz#q", "/abc", "abc", "#frag", "?q", "a/b:c", "http://a/", "./a:b"],
        ["\\\\WINDOWS", "#frag\\ment", "1:b", "a b", "%1", "##"],
    ),
    "iri": (
        ["http://ƒøø.ßår/?∂éœ=πîx#πîüx", "http://[2001:db8::7]", "a:\U000e1000", "a:?\ue000"],
        ["/abc", "âππ", "http://2001:0db8:85a3:0000:0000:8a2e:0370:7334", "a:\ue000", "a:\ufffe", "http://\u3000<"],
    ),
    "iri-reference": (["âππ", "#ƒrägmênt", "//ƒøø/"], ["\\\\WINDÖWS", "#ƒräg\\mênt", "a b"]),
    "uri-template": (
        [
            "http://example.com/dictionary/{term:1}/{term}",
            "{+path}/here",
            "{#x,hello*}",
            "{a.b}",
            "",
            "a'b",
            "{?x,y:9999}",
        ],
        ["{", "}", "{}", "{a", "{a:0}", "{a:10000}", "{^a}", "a b", "{a,}", "{.}", "{a..b}", "<", "%2"],
    ),
    "json-pointer": (
        ["", "/", "/foo/0", "/a~1b/~0", '/"\\', "//", "/\n", "/é"],
        ["a", "/~", "/~2", "#", "/a~"],
    ),
    "regex": (
        [
            "",
            "^[a-z]+$",
            r"^(?:[A-Z]\d{2,4}|x)*$",
            "a|",
            "()",
            "((((a))))?",
            r"[\w.+-]+@[\w-]+\.[a-z]{2,}",
            r"^(?=.*[A-Z])(?!.*\s|\d{3}).{8,}?$",
            "(?:(?!ab).)*",
            '"é+[^"\U0001f600]',
            r"\b\u00e9\xff\/\{\}\B",
            "[a^][-a][a-][-a-][a-fQ-Z1-9x-z]",
            r"[\d-][\b\-\]]",
            "[ -~]",
            "a{0}b{1,1}c{9,10}d{10,15}e{12,20}f{90,99}g{99,100}h{999,}",
        ],
        [
            *("(", ")", "(a", "a)", "*a", "|*", "(*)", "a**", "a??+", "^*", r"\b+", "(?=a)*", "(?!a){2}"),
            *("{", "}", "]", "a{", "a{,1}", "a{1,2", "a{2,1}", "a{20,10}", "a{15,10}", "a{100,99}", "a{01}"),
            *("[", "[]", "[^]", "[a", "[z-a]", "[9-0]", r"[\d-z]", r"[a-\d]", "[[a]]", "[^^]", "[--]"),
            *("\\", r"\1", r"(a)\1", r"\a", r"\-", r"\cA", r"\p{L}", r"\u12", r"\x1", r"\ud800", r"\u{1f600}", r"\0"),
            *("(?<n>a)", "(?P<n>a)", "(?<=a)", "(?<!a)", "(?i)a", "(?i:a)", "(?>a)", "a*+", "(?#a)", "(?"),
            *("(((((a)))))", "(?=(a))", "((?=a)(?!(?:a)))", "(((?=a)))", "a\nb", "\b", "[\t]"),
        ],
    ),
    "relative-json-pointer": (["0", "1/foo", "0#", "12/"], ["", "/foo", "-1", "01", "0##", "1foo", "+1/a"]),
}


def _accepts(name: str, text: str) -> bool:
    expression = format_expression(name)
    assert expression is not None
    return matches(expression, json.dumps(text, ensure_ascii=False)[1:-1].encode())


def test_every_known_format_has_cases() -> None:
    assert set(CASES) == KNOWN_FORMATS


@pytest.mark.slow(only=("idn-email",))
@pytest.mark.parametrize("name", sorted(CASES))
def test_format_matches_exactly(name: str) -> None:
    accepted, rejected = CASES[name]
    assert [text for text in accepted if not _accepts(name, text)] == []
    assert [text for text in rejected if _accepts(name, text)] == []


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
    for _ in range(3000):
        groups = rng.choices(["0", "1", "ab", "ffff", "", ""], k=rng.randrange(2, 10))
        text = ":".join(groups) + rng.choice(["", "", "", "::", ":1.2.3.4", "1.2.3.4"])
        try:
            ipaddress.IPv6Address(text)
        except ValueError:
            assert not _accepts("ipv6", text), text
        else:
            assert _accepts("ipv6", text), text
            valid += 1
    assert valid > 200


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


WIDER_CASES = {
    "date": (["0000-02-29", "0000-12-31"], ["0000-02-30", "1900-02-29", "02000-01-01"]),
    "time": (
        [
            "23:59:60Z",
            "23:59:60.5z",
            "01:29:60+01:30",
            "00:00:60+00:01",
            "00:29:60-23:30",
            "12:00:00.1234567890123456789Z",
        ],
        ["22:59:60Z", "23:59:60+00:01", "01:29:60+02:30", "23:59:60-00:01", "23:59:61Z", "23:58:60+23:58"],
    ),
    "date-time": (
        ["0000-01-01T00:00:00Z", "1998-12-31T15:59:60.123-08:00"],
        ["1998-12-31T15:59:60Z", "0000-02-30T00:00:00Z"],
    ),
    "duration": (["P9999999999999999D", "PT1H9999999999M"], ["P9999999999999999", "PT1H1S"]),
    "hostname": (["xn--X", "ab--c"], ["xn--X-", "a..b", "ab--c" * 13]),
    "email": (["a@xn--X"], ["a@xn--X-"]),
    "idn-email": (["é@xn--X", "a@cafe\u0301.com", "é" * 33 + "@a"], ["@a", "a@", "a@-ü"]),
    "idn-hostname": (
        ["xn--X", "MÜNCHEN.de", "a。b", "a.", "cafe\u0301", "0a.א", "\u0378", "ü" * 59],
        ["", "a_b", "-ü", "ü-", "\u0301a", "aא", "☃", "ü" * 60, "a" * 64, "ü b"],
    ),
    "regex": (
        [r"(a)\\1", "(?<n>a)", "(((((a)))))", r"\\p{L}", "{", "[", "(", "a**"],
        ["*", "+a", "?", ")", r"\\", r"a\\"],
    ),
    "relative-json-pointer": (["0+1", "1-12/a", "0-1#"], ["0+", "+1", "0+1+1"]),
    "uri-template": (["{=a}", "{|a,b}"], ["{^a}", "{==a}"]),
}


def test_every_wider_format_has_cases() -> None:
    assert set(WIDER_CASES) == LEFT_OUT.keys()


@pytest.mark.slow(only=("idn-email", "idn-hostname"))
@pytest.mark.parametrize("name", sorted(WIDER_CASES))
def test_a_definition_allows_more_than_is_written(name: str) -> None:
    definition, written = format_definition(name), format_expression(name)
    assert written is not None
    accepted, rejected = WIDER_CASES[name]
    assert [text for text in accepted if not core.matches(definition, text.encode())] == []
    assert [text for text in accepted if core.matches(written, text.encode())] == []
    assert [text for text in rejected if core.matches(definition, text.encode())] == []
    assert [
        text
        for text in CASES[name][0]
        if not core.matches(definition, json.dumps(text, ensure_ascii=False)[1:-1].encode())
    ] == []


def test_leap_seconds_are_those_of_the_last_minute_in_utc() -> None:
    rng = random.Random(13)
    leap = {}
    for _ in range(2000):
        hour, minute, sign = rng.randrange(24), rng.randrange(60), rng.choice((1, -1))
        offset = sign * (hour * 60 + minute - 1439) % 1440 if rng.random() < 0.5 else rng.randrange(1440)
        utc = (hour * 60 + minute - sign * offset) % 1440
        text = f"{hour:02}:{minute:02}:60{'+' if sign > 0 else '-'}{offset // 60:02}:{offset % 60:02}"
        leap[text.encode()] = utc == 1439
    found = core.list_matches(Intersection((LiteralSet(tuple(leap)), format_definition("time"))), len(leap))
    assert sorted(found or ()) == sorted(text for text, is_leap in leap.items() if is_leap)
    assert len(found or ()) > 700


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
        r"\d",
        r"\b",
        r"\u",
        r"\x",
        "(?:",
        "(?=",
        "{1,",
        "{20,",
        "a-z",
        "[^",
        "\n",
    ]
    expression = format_expression("regex")
    assert expression is not None
    texts = {"".join(rng.choices(pieces, k=rng.randrange(1, 9))) for _ in range(4000)}
    written = [text for text in texts if core.matches(expression, json.dumps(text)[1:-1].encode())]
    assert [text for text in written if not _is_pattern(text)] == []
    valid = [text for text in texts if _is_pattern(text)]
    assert len(valid) > len(written) > len(valid) / 2
    definition = format_definition("regex")
    assert [text for text in valid if not core.matches(definition, json.dumps(text)[1:-1].encode())] == []
    vocabulary = byte_vocabulary()
    walker = Walker(constrain.compile({"format": "regex", "type": "string"}, vocabulary), vocabulary)
    tokens = Tokens(vocabulary)
    for _ in range(40):
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


@pytest.mark.parametrize("draft", ["draft-04/schema#", "draft-06/schema#", "draft-07/schema#", "draft/2019-09/schema"])
def test_known_formats_are_enforced_in_every_draft(draft: str) -> None:
    scheme = "http" if draft.startswith("draft-") else "https"
    for name in ("date", "uuid", "duration", "json-pointer"):
        schema = {"$schema": f"{scheme}://json-schema.org/{draft}", "type": "string", "format": name}
        assert compile_schema(schema).warnings == ()
        assert not constrain.compile(schema, byte_vocabulary()).accepts('"?"')
