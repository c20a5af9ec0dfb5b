"""Options and helpers that several commands share."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import threading
import time
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape

from constrain import grammars
from constrain.arguments import Flag, option
from constrain.cli.flags import refuse_together
from constrain.errors import ConstrainError, ExportError, GrammarError, LimitError, PatternError, SchemaError
from constrain.gbnf.source import Gbnf
from constrain.language.schema_text import schema_text
from constrain.language.short_schema import is_short
from constrain.language.wrong_schema import describe_no_json
from constrain.lark.source import Lark
from constrain.regex.source import Regex
from constrain.structural.source import StructuralTag

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from constrain.language.policies import CompileOptions
    from constrain.language.source import Source

DIALECTS = ("rust", "ecma", "python")

FAILED, WRONG_INPUT, LINES_FAILED = 1, 2, 3

HARMLESS = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}
"""Replacements for control characters: a terminal would obey them, so neither a model nor a text may print them."""


def find_model(given: Path | None) -> Path | None:
    """Returns the path of a model for a path or a name in the list of ``constrain models``. Raises ``ModelError``."""
    from constrain.llama.names import model_path

    return None if given is None else model_path(given)


ALL_LAYERS = -1
"""Value of ``--gpu-layers`` that offloads all layers to a GPU."""


@dataclass(frozen=True)
class Machine:
    """The model of a command, and what it computes with."""

    model: Path | None = option(
        None,
        Flag('GGUF file, or a name of "constrain models"; by default the model of the demo extra.', check=find_model),
    )
    n_ctx: int | None = option(None, Flag("Context in tokens; 0 for the model's maximum.", "ctx"), least=0)
    n_threads: int | None = option(
        None,
        Flag(
            "Threads to compute with; fewer while other programs need the cores.", "threads", default="physical cores"
        ),
        least=1,
    )
    n_gpu_layers: int | None = option(
        None, Flag("Layers to offload to a GPU; -1 for all, 0 for none.", "gpu_layers", default="-1"), least=-1
    )

    @property
    def name(self) -> str:
        """Name of the model, for progress."""
        return self.model.name if self.model else "the default model"

    def sizes(self) -> dict[str, Any]:
        """Returns the arguments of ``Model`` besides the path."""
        layers = ALL_LAYERS if self.n_gpu_layers is None else self.n_gpu_layers
        return {"n_ctx": self.n_ctx, "n_threads": self.n_threads, "n_gpu_layers": layers}


@dataclass(frozen=True)
class Further:
    """Files with schemas that references name, with texts to quote from, and tables."""

    registry: Path | None = option(None, Flag("File with a JSON object from URIs to schemas, for references."))
    sources: list[str] | None = option(
        None, Flag("A text to quote from, with its name; repeat the option for several.", metavar="NAME=FILE")
    )
    tables: list[str] | None = option(
        None,
        Flag(
            "A table for x-one-of, with its name: a CSV or Parquet file, DATABASE.db:TABLE of SQLite, or URL:TABLE; "
            "repeat the option for several.",
            "table",
            metavar="NAME=SOURCE",
        ),
    )

    def read(self) -> CompileOptions:
        """Returns the options that the files give. Raises the errors of ``read_registry`` and ``read_sources``."""
        return {**read_registry(self.registry), **read_sources(self.sources), **read_tables(self.tables)}

    def files(self) -> list[Path]:
        """Returns the files with texts and tables."""
        named = [each.partition("=")[2] for each in (*(self.sources or ()), *(self.tables or ()))]
        return [Path(file) for each in named for file in (each, each.rpartition(":")[0]) if file]


def show_error(error: Exception) -> None:
    """Prints an error on standard error; for a file that cannot be used, its name and the reason."""
    said = str(error)
    if isinstance(error, OSError) and error.strerror:
        said = _WHY.get(type(error), error.strerror.lower())
        if error.filename is not None:
            said = f"{os.fsdecode(error.filename)}: {said}"
    Console(stderr=True, soft_wrap=True).print(
        f"error: {said.translate(HARMLESS)}", style="bold red", markup=False, highlight=False
    )


_WHY: dict[type[OSError], str] = {
    FileNotFoundError: "there is no such file or folder",
    IsADirectoryError: "this is a folder, not a file",
    NotADirectoryError: "a part of this path is a file, not a folder",
    PermissionError: "there is no permission to use it",
}
"""Plain descriptions of file errors, in place of the system's words."""


def show_warnings(warnings: Iterable[str], console: Console | None = None) -> None:
    """Prints warnings about a schema on standard error, or on the given console."""
    shown = console or Console(stderr=True, soft_wrap=True)
    for warning in warnings:
        shown.print(f"warning: {warning.translate(HARMLESS)}", style="yellow", markup=False, highlight=False)


def read_text(path: Path) -> str:
    """Reads a text file, without a byte order mark. Raises ``OSError``, and ``ValueError`` if it is not UTF-8."""
    return decode_text(path.read_bytes(), str(path))


def decode_text(data: bytes, name: str) -> str:
    """Decodes bytes as Python reads text files: without a byte order mark, with line feeds only.

    Raises ``ValueError``, with ``name``, if the bytes are not UTF-8.
    """
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name}: this is not UTF-8: {error.reason} at byte {error.start}; encode it as UTF-8"
        ) from error


QUIET_SECONDS = 30
"""Seconds without a word on a standard error that is no terminal: 30; a step that takes longer is told."""


class Pace:
    """Says when progress is to be told where there is no terminal: each ``QUIET_SECONDS``."""

    def __init__(self) -> None:
        self._told = time.monotonic()

    def is_due(self) -> bool:
        """Returns whether it is time for a line; then the next one is due later."""
        if time.monotonic() - self._told < QUIET_SECONDS:
            return False
        self._told = time.monotonic()
        return True


@contextlib.contextmanager
def show_progress(console: Console, what: str) -> Iterator[None]:
    """Shows that a step takes time: on a terminal at once, elsewhere in a line after ``QUIET_SECONDS``."""
    if console.is_terminal:
        with console.status(escape(f"{what} ...")):
            yield
        return
    telling = threading.Timer(QUIET_SECONDS, lambda: console.print(f"{what} ...", markup=False, highlight=False))
    telling.daemon = True
    telling.start()
    try:
        yield
    finally:
        telling.cancel()


def read_pattern(pattern: str, dialect: str | None) -> Regex:
    """Reads a pattern in a dialect, by default Rust's. Raises ``PatternError``."""
    return Regex(pattern, dialect or "rust")  # type: ignore[arg-type]  # checked where it is read


@dataclass(frozen=True)
class Language:
    """The options that say what answers are, of which at most one is given; and the file that says it, if any."""

    schema: str | None = option(
        None,
        Flag(
            "JSON Schema of the answer: a file, JSON, MODULE:CLASS of Python, or keys with types, such as 'name, age "
            "int, level: low|high'.",
            metavar="FILE or SCHEMA",
        ),
    )
    regex: str | None = option(None, Flag("Regular expression of the answer, in place of a schema.", metavar="PATTERN"))
    dialect: str | None = option(
        None, Flag("Syntax of --regex: the regex crate's, JSON Schema's, or re's."), choices=DIALECTS
    )
    lark: str | None = option(
        None,
        Flag(
            'Lark grammar of the answer, in place of a schema: a file, or one of "constrain grammars".',
            metavar="FILE or NAME",
        ),
    )
    gbnf: Path | None = option(
        None, Flag("File with a grammar of llama.cpp for the answer, in place of a schema.", metavar="FILE")
    )
    structural_tag: Path | None = option(
        None, Flag("File with a structural tag of XGrammar for the answer, in place of a schema.", metavar="FILE")
    )
    sql: str | None = option(
        None,
        Flag(
            "Database that the answer queries, in place of a schema: a file of SQLite, a URL, or a file of CREATE "
            "statements that ends in .sql.",
            metavar="SOURCE",
        ),
    )

    @property
    def file(self) -> Path | None:
        """Returns the file with the schema or grammar."""
        if self.schema is not None:
            return schema_file(self.schema)
        return self.gbnf or self.structural_tag or (None if self.lark is None else file_of(self.lark))

    def read(self, schema_option: str = "--schema") -> str | Source | None:
        """Returns the text of a schema, or the source; None if no option is given.

        Raises ``OSError`` and the errors of patterns and grammars.
        """
        options = {
            schema_option: self.schema,
            "--regex": self.regex,
            "--lark": self.lark,
            "--gbnf": self.gbnf,
            "--structural-tag": self.structural_tag,
            "--sql": self.sql,
            "--dialect": self.dialect,
        }
        refuse_together(**{name: value is not None for name, value in options.items()})
        if self.regex is not None:
            return read_pattern(self.regex, self.dialect)
        if self.lark is not None:
            return read_lark(self.lark)
        if self.gbnf is not None:
            return Gbnf(read_text(self.gbnf))
        if self.structural_tag is not None:
            return StructuralTag(read_text(self.structural_tag))
        if self.sql is not None:
            from constrain.queries.served import sql_at

            return sql_at(self.sql)
        if self.schema is None:
            return None
        return read_schema_text(self.schema)


def read_schema_text(given: str) -> str:
    """Returns the text of a schema: that of the file or class, or the argument itself.

    Raises the errors of ``read_text``, and ``SchemaError`` for a class.
    """
    path = schema_file(given)
    if path is not None:
        text = read_text(path)
        if is_short(text) and not _SEVERAL_WORDS.search(text.strip()):
            raise _no_schema(f"{path} has one word, {text.strip()!r:.80}, which is no schema: JSON, or", text)
        return text
    return schema_text(_import(given), tightened=True) if _CLASS.fullmatch(given) else given


def _no_schema(begin: str, given: str) -> SchemaError:
    return SchemaError(f"{begin} keys with types, such as 'name str, age int'{describe_no_json(given)}")


_CLASS = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")
_SEVERAL_WORDS = re.compile(r"[\s,|]")


def _import(given: str) -> object:
    """Returns the class that ``MODULE:CLASS`` names; modules of this folder come first. Raises ``SchemaError``."""
    module, _, name = given.partition(":")
    here = os.fspath(Path.cwd())
    sys.path.insert(0, here)
    try:
        return attrgetter(name)(importlib.import_module(module))
    except Exception as error:  # of the module
        others = "a schema is also a file, JSON, or keys with types, such as 'name str'"
        raise SchemaError(f"{given} is read as MODULE:CLASS: {type(error).__name__}: {error}; {others}") from error
    finally:
        sys.path.remove(here)


def schema_file(given: str) -> Path | None:
    """Returns the file that ``--schema`` names; None for a schema (JSON or several words) and for a class.

    Raises ``SchemaError`` for one word that neither is a file nor looks like the name of one.
    """
    has_words = _SEVERAL_WORDS.search(given.strip()) is not None and not given.rstrip().endswith(".json")
    is_schema = given.lstrip().startswith("{") or (has_words and is_short(given)) or _CLASS.fullmatch(given)
    if os.path.exists(given):  # noqa: PTH110 - a schema is no path
        return Path(given)
    if not is_schema and not re.search(r"[/.]\w+$", given):
        raise _no_schema(f"{given!r:.80} is neither a file nor a schema: JSON, MODULE:CLASS, or", given)
    return None if is_schema else Path(given)


def read_lark(name: str) -> Lark:
    """Reads a grammar from a file, or loads the ready-made grammar of that name.

    Raises ``GrammarError`` or ``OSError``.
    """
    path = Path(name)
    is_path = path.exists() or path.name != name or path.suffix
    if not is_path and not name.isidentifier():
        raise GrammarError(f"{name!r:.80} is neither a file nor a name; write the text of a grammar into a file")
    return Lark(read_text(path)) if is_path else grammars.load(name)


def file_of(lark: str) -> Path | None:
    """Returns the file of a Lark grammar; None for a ready-made one."""
    return Path(lark) if Path(lark).is_file() else None


class FileError(ConstrainError):
    """An error in a schema or grammar, with the name of its file."""


@contextlib.contextmanager
def name_file(path: Path | None) -> Iterator[None]:
    """Puts the name of a file in front of errors in its schema or grammar."""
    try:
        yield
    except (SchemaError, GrammarError, PatternError, LimitError, ExportError) as error:
        if path is None:
            raise
        raise FileError(f"{path}: {error}") from error


def read_registry(path: Path | None) -> CompileOptions:
    """Reads the file of ``--registry``, a JSON object with a schema for each URI; returns the option ``registry``.

    Raises the errors of ``read_schema``, and ``SchemaError`` for JSON that is not an object.
    """
    if path is None:
        return {}
    found = read_schema(path)
    if not isinstance(found, dict):
        raise SchemaError(
            f"{path}: the registry must be a JSON object with a schema for each URI, such as "
            '{"https://example.com/address": {"type": "string"}}'
        )
    return {"registry": found}


def read_sources(given: list[str] | None) -> CompileOptions:
    """Reads the files of ``--sources``, each ``NAME=FILE``; returns the option ``sources``.

    Files with the same name are the texts of one source. Raises the errors of ``read_text``, and ``BadParameter`` for
    another form.
    """
    sources: dict[str, list[str]] = {}
    for each in given or ():
        name, equals, file = each.partition("=")
        if not (name and equals and file):
            raise typer.BadParameter(f"{each!r} must be NAME=FILE, such as letters=letters.txt", param_hint="--sources")
        sources.setdefault(name, []).append(read_text(Path(file)))
    return {"sources": sources} if sources else {}


def read_tables(given: list[str] | None) -> CompileOptions:
    """Reads the tables of ``--table``, each ``NAME=SOURCE``; returns the option ``tables``.

    Raises SchemaError and LimitError, and ``BadParameter`` for another form.
    """
    from constrain.tables.table import split_names, table_at

    try:
        named = split_names(given or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--table") from error
    return {"tables": {name: table_at(source) for name, source in named.items()}} if named else {}


def read_schema(path: Path) -> Any:
    """Reads a JSON file. Raises ``SchemaError`` if it is not JSON, and ``ValueError`` if it is not UTF-8."""
    return _parse_json(read_text(path), f"{path}")


def parse_schema_argument(given: str) -> Any:
    """Returns the schema of an argument: a file, JSON, or keys with types. Raises the errors of ``read_schema``."""
    with name_file(schema_file(given)):
        text = schema_text(read_schema_text(given))
    return _parse_json(text, given)


def _parse_json(text: str, name: str) -> Any:
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"{name} is not JSON: {error}; correct it there") from error
