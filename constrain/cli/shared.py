"""What several commands share: options, and a sign that something takes its time."""

from __future__ import annotations

import contextlib
import inspect
import os
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from constrain import grammars
from constrain.errors import ConstrainError, GrammarError, LimitError, PatternError, SchemaError
from constrain.generation.options import MAX_NUMBER_TOKENS, Options
from constrain.language.policies import CHOICES, CompileOptions
from constrain.lark.source import Lark
from constrain.regex.source import Regex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from constrain.language.source import Source

FAILED, WRONG_INPUT, LINES_FAILED = 1, 2, 3

HARMLESS = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}
"""Control characters, which a terminal would obey, are not for a model or a text to write."""

SchemaFile = Annotated[Path | None, typer.Option(help="File with the JSON Schema of the answer.")]
Pattern = Annotated[
    str | None,
    typer.Option("--regex", metavar="PATTERN", help="Regular expression of the answer, in place of a schema."),
]


def one_of(choices: tuple[str, ...], about: str) -> Any:
    """An option that has one of these values, the first by default."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in choices:
            raise typer.BadParameter(f"{value!r} is none of {', '.join(choices)}")
        return value

    return typer.Option(metavar="|".join(choices), callback=check, help=about, show_default=choices[0])


PatternDialect = Annotated[
    str | None, one_of(("rust", "ecma", "python"), "Syntax of --regex: the regex crate's, JSON Schema's, or re's.")
]
LarkGrammar = Annotated[
    str | None,
    typer.Option(
        "--lark",
        metavar="FILE or NAME",
        help='Lark grammar of the answer, in place of a schema: a file, or one of "constrain grammars".',
    ),
]
RegistryFile = Annotated[
    Path | None, typer.Option(help="File with a JSON object from URIs to schemas, for references.")
]
ModelFile = Annotated[Path | None, typer.Option(help="GGUF file; by default the model of the demo extra.")]
Context = Annotated[int | None, typer.Option("--ctx", min=0, help="Context in tokens; 0 for the model's.")]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, help="Threads to compute with; fewer while other programs need the cores."),
]


def takes(**groups: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the parameters of functions, in place of parameters of its own: these take what they return."""

    def extend(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters
        shared = {name: inspect.signature(make, eval_str=True).parameters for name, make in groups.items()}

        @wraps(command)
        def extended(**given: Any) -> None:
            made = {name: make(**{each: given.pop(each) for each in shared[name]}) for name, make in groups.items()}
            command(**given, **made)

        listed = [parameter for name in own for parameter in shared.get(name, {name: own[name]}).values()]
        named = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in listed]
        extended.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
        extended.__annotations__ = {parameter.name: parameter.annotation for parameter in named}
        return extended

    return extend


def _choice(policy: str, about: str) -> Any:
    return one_of(CHOICES[policy], about)


def policies(
    *,
    whitespace: Annotated[str | None, _choice("whitespace", "Between the parts of the JSON text.")] = None,
    property_order: Annotated[str | None, _choice("property_order", "Keys as the schema lists them, or any.")] = None,
    formats: Annotated[str | None, _choice("formats", "Whether formats are enforced.")] = None,
    numbers: Annotated[str | None, _choice("numbers", "How numbers are spelled.")] = None,
    precision: Annotated[
        str | None, _choice("precision", "Numbers are valid as doubles and as decimals, or only as decimals.")
    ] = None,
    escapes: Annotated[str | None, _choice("escapes", "How the characters of strings are spelled.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse what OpenAI's strict mode does.")] = False,
) -> CompileOptions:
    """How schemas are compiled: what was asked for."""
    found: dict[str, Any] = {
        "whitespace": whitespace, "property_order": property_order, "formats": formats, "numbers": numbers,
        "precision": precision, "escapes": escapes, "strict": strict or None,
    }  # fmt: skip
    asked: CompileOptions = {name: value for name, value in found.items() if value is not None}  # type: ignore[assignment]
    return asked


def options(
    *,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens of the answer.")] = None,
    max_string_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens after which a string is brought to its end.")
    ] = None,
    max_number_tokens: Annotated[
        int, typer.Option(min=0, help="Tokens after which a number is brought to its end; 0 for no limit.")
    ] = MAX_NUMBER_TOKENS,
    temperature: Annotated[float, typer.Option(min=0, help="0 takes the most likely token.")] = 0.8,
    top_k: Annotated[int, typer.Option(min=0, help="Sample from this many tokens; 0 for all.")] = 40,
    top_p: Annotated[float, typer.Option(min=0, max=1, help="Sample from tokens of this probability.")] = 0.95,
    min_p: Annotated[float, typer.Option(min=0, max=1, help="Least probability beside the greatest.")] = 0.05,
    repeat_penalty: Annotated[float, typer.Option(help="Divides the logits of recent tokens.")] = 1.0,
    presence_penalty: Annotated[
        float, typer.Option(min=-2, max=2, help="Subtracted from the logits of tokens that were written already.")
    ] = 0.0,
    frequency_penalty: Annotated[
        float, typer.Option(min=-2, max=2, help="The same, as often as they were written.")
    ] = 0.0,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds until the answer is ended.")] = None,
    show_schema: Annotated[bool, typer.Option(help="Whether the prompt shows the schema.")] = True,
) -> Options:
    """How an answer is generated, the seed aside."""
    return {
        "max_tokens": max_tokens,
        "max_string_tokens": max_string_tokens,
        "max_number_tokens": max_number_tokens or None,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repeat_penalty": repeat_penalty,
        "presence_penalty": presence_penalty,
        "frequency_penalty": frequency_penalty,
        "timeout": timeout,
        "show_schema": show_schema,
    }


def show_error(error: Exception) -> None:
    """Says on standard error what went wrong; of a file that cannot be used, which one and why."""
    said = str(error)
    if isinstance(error, OSError) and error.strerror:
        said = _WHY.get(type(error), error.strerror.lower())
        if error.filename is not None:
            said = f"{os.fsdecode(error.filename)}: {said}"
    Console(stderr=True, soft_wrap=True).print(f"error: {said}", style="bold red", markup=False, highlight=False)


_WHY: dict[type[OSError], str] = {
    FileNotFoundError: "there is no such file or folder",
    IsADirectoryError: "this is a folder, not a file",
    NotADirectoryError: "a part of this path is a file, not a folder",
    PermissionError: "there is no permission to use it",
}
"""What is wrong with a file, in place of the system's words."""


def show_warnings(warnings: Iterable[str], console: Console | None = None) -> None:
    """Says on standard error, or on its console, what a reader of the schema should know."""
    shown = console or Console(stderr=True, soft_wrap=True)
    for warning in warnings:
        shown.print(f"warning: {warning}", style="yellow", markup=False, highlight=False)


def read_text(path: Path) -> str:
    """The text in a file, without a byte order mark. Raises ``OSError``, and ``ValueError`` if it is not UTF-8."""
    return decoded(path.read_bytes(), str(path))


def decoded(data: bytes, name: str) -> str:
    """The text that bytes are, as Python reads files: without a byte order mark, all lines ending alike.

    Raises ``ValueError`` with the name of the bytes if they are not UTF-8.
    """
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: this is not UTF-8: {error.reason} at byte {error.start}") from error


@contextlib.contextmanager
def working(console: Console, what: str) -> Iterator[None]:
    """Shows that something takes its time, on a terminal."""
    if not console.is_terminal:
        yield
        return
    with console.status(f"{what} ..."):
        yield


def read_pattern(pattern: str, dialect: str | None) -> Regex:
    """The pattern in a dialect, by default Rust's. Raises ``PatternError``."""
    return Regex(pattern, dialect or "rust")  # type: ignore[arg-type]  # checked where it is read


def read_wanted(schema: Path | None, regex: str | None, dialect: str | None, lark: str | None) -> str | Source | None:
    """What an answer must be, by the one option that says so: JSON text, or what stands in its place."""
    options = {"--schema": schema, "--regex": regex, "--lark": lark}
    given = [name for name, value in options.items() if value is not None]
    if len(given) > 1:
        raise typer.BadParameter(f"{' and '.join(given)} all say what the answer is; give one of them")
    if dialect is not None and regex is None:
        raise typer.BadParameter("--dialect is about --regex, which is not there")
    if regex is not None:
        return read_pattern(regex, dialect)
    if lark is not None:
        return read_lark(lark)
    return None if schema is None else read_text(schema)


def read_lark(name: str) -> Lark:
    """The grammar in a file, or else the ready one of that name. Raises ``GrammarError`` or ``OSError``."""
    path = Path(name)
    is_path = path.exists() or path.name != name or path.suffix
    return Lark(read_text(path)) if is_path else grammars.load(name)


def file_of(schema: Path | None, lark: str | None) -> Path | None:
    """The file that says what an answer must be; ``None`` if that stands in no file."""
    return schema if lark is None or not Path(lark).is_file() else Path(lark)


class FileError(ConstrainError):
    """What is wrong with a schema or grammar, with the file that has it."""


@contextlib.contextmanager
def naming(path: Path | None) -> Iterator[None]:
    """Puts the name of a file in front of what is wrong with the schema or grammar in it."""
    try:
        yield
    except (SchemaError, GrammarError, PatternError, LimitError) as error:
        if path is None:
            raise
        raise FileError(f"{path}: {error}") from error


def read_registry(path: Path | None) -> CompileOptions:
    """The schemas in a file by their URIs, as an option. Raises ``SchemaError`` if they are none."""
    if path is None:
        return {}
    found = read_schema(path)
    if not isinstance(found, dict):
        raise SchemaError(f"{path} is no JSON object from URIs to schemas")
    return {"registry": found}


def read_schema(path: Path) -> Any:
    """The JSON in a file. Raises ``SchemaError`` if it is none, and ``ValueError`` if it is no text."""
    import json

    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"{path} is not JSON: {error}") from error
