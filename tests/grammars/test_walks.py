"""Ready grammars: whatever a mask allows ends in a text that another reader of the format takes."""

from __future__ import annotations

import ast
import configparser
import csv
import datetime as dt
import ipaddress
import json
import re
import sys
import urllib.parse
import uuid
import warnings
from email.parser import BytesHeaderParser
from random import Random
from typing import TYPE_CHECKING

import email_validator
import pytest

from constrain import grammars
from tests.grammars.tables import constraint, table, tomllib
from tests.support import LONG, Tokens, Walker, byte_vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

WALKS = 400 if LONG else 40
LONGEST = 60
"""Random bytes of a walk, before it takes the shortest way to an end."""


def read_toml(text: str) -> None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        if not re.match("Cannot (overwrite|declare|mutate|redefine)|Duplicate", str(error)):  # defined twice
            raise


def read_ini(text: str) -> None:
    configparser.ConfigParser(strict=False, interpolation=None, default_section="\0").read_string(text)


def read_csv_row(text: str) -> None:
    assert len(list(csv.reader([text], strict=True))) == 1


def read_email(text: str) -> None:
    email_validator.validate_email(text, check_deliverability=False, test_environment=True)


def read_url(text: str) -> None:
    parts = urllib.parse.urlsplit(text)
    assert parts.hostname
    assert parts.port != 0


def read_http_headers(text: str) -> None:
    headers = BytesHeaderParser().parsebytes(text.encode("ascii"))
    assert not headers.defects
    assert len(headers.items()) == len(text.splitlines())


def read_python_expression(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        ast.parse(text, mode="eval")


def read_date_time(text: str) -> None:
    fraction = re.sub(r"\.(\d{1,6})\d*", lambda found: f".{found[1]:0<6}", text)  # all that Python 3.10 reads
    dt.datetime.fromisoformat(fraction.upper().replace("Z", "+00:00"))


READERS: dict[str, Callable[[str], object]] = {
    "csv_row": read_csv_row,
    "email": read_email,
    "http_headers": read_http_headers,
    "ini": read_ini,
    "ip_address": ipaddress.ip_address,
    "json": json.loads,
    "python_expression": read_python_expression,
    "rfc3339": read_date_time,
    "toml": read_toml,
    "url": read_url,
    "uuid": uuid.UUID,
}
"""Raise if a text is not in the format."""

if sys.version_info < (3, 11):  # it has no reader of TOML
    del READERS["toml"]


@pytest.mark.parametrize("name", grammars.names())
def test_every_walk_ends_in_an_accepted_text(name: str) -> None:
    walker, tokens = Walker(constraint(name), byte_vocabulary()), Tokens(byte_vocabulary())
    for walk in range(WALKS):
        text = walker.text(Random(f"{name} {walk}"), tokens, LONGEST)
        assert constraint(name).accepts(text), (walk, text)
        if name in READERS:
            READERS[name](text.decode())


@pytest.mark.parametrize("name", READERS)
def test_other_readers_take_the_accepted_texts(name: str) -> None:
    for text in table(name).accepted:
        READERS[name](text)
