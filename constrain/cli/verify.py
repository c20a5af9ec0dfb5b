"""``constrain verify``: checks certificates of answers; and what ``generate --certificate`` writes."""

from __future__ import annotations

import contextlib
import json
import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from constrain.arguments import Flag, option
from constrain.certificates.certificate import canonical, verify_certificate
from constrain.certificates.signing import read_private_key, read_public_key, sign, verify_signature
from constrain.cli import flags, shared
from constrain.cli.tracing import require_place
from constrain.errors import ConstrainError
from constrain.verify import exact, judge

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from decimal import Decimal

    from constrain.generation.completion import Completion
    from constrain.generation.observers.certificate.replay import Difference
    from constrain.llama.model import Model

JUDGED = "jsonschema agrees"
"""What ``judge`` says of a text that jsonschema accepts."""

DIFFERS = 4
"""Exit status for a certificate that holds, but whose answer the model writes differently now."""


@dataclass(frozen=True)
class _Verifying:
    """The flags of ``verify``."""

    recompile: bool = option(False, Flag("Compile the schema or grammar again, and compare the result."))
    model: Path | None = option(
        None, Flag("GGUF file: compare its hash, have it write the answers again, and compare these.")
    )
    prompt: Path | None = option(
        None, Flag("File with the prompt (its text, or token ids as a JSON list), if certificates lack it.")
    )
    public_key: Path | None = option(
        None, Flag("PEM file with the Ed25519 key whose signature certificates must have.")
    )
    previous: str | None = option(None, Flag("Hash of the certificate before the first one of these.", metavar="HASH"))
    tables: list[str] | None = option(
        None, Flag("A table of the schema, as for generate; needed for large ones.", "table", metavar="NAME=SOURCE")
    )


@flags.takes(own=_Verifying, machine=flags.only(shared.Machine, "n_threads", "n_gpu_layers"))
def verify(
    files: Annotated[list[Path], typer.Argument(help="Certificates: a file has one, or one in each line.")],
    *,
    own: _Verifying,
    machine: shared.Machine,
) -> None:
    """Checks certificates of answers, which generate --certificate writes, and says what was proved.

    Always: the tokens spell the text, the text is one of the grammar, limits on tokens are kept, hashes agree, and each
    certificate follows the one that it names. The exit status is 0 if all holds, 1 for a certificate that is refused, 2
    for wrong usage and for files that cannot be used, and 4 if all holds, but a model writes another answer now.
    """
    flags.refuse_together(**{"verify --prompt": own.prompt is not None, "--model": own.model is not None})
    try:
        given = None if own.prompt is None else _read_prompt(own.prompt)
        key = None if own.public_key is None else own.public_key.read_bytes()
        if key is not None:
            with _named(own.public_key):
                read_public_key(key)
        tables = shared.read_tables(own.tables).get("tables")
        checks = _Checks(own.recompile, own.model, given, key, machine.n_threads, machine.n_gpu_layers, tables)
        listed = [(name, certificate) for path in files for name, certificate in _read(path)]
    except (ConstrainError, OSError, ValueError, ModuleNotFoundError) as error:
        shared.show_error(error)
        raise typer.Exit(shared.WRONG_INPUT) from error
    before, status = own.previous, 0
    for name, certificate in listed:
        try:
            before, said, is_equal = checks.run(certificate, before)
        except (ConstrainError, OSError, ValueError) as error:
            shared.show_error(ValueError(f"{name}: refused: {error}"))
            raise typer.Exit(shared.FAILED) from error
        sys.stdout.write(f"{name}: {'; '.join(said)}\n".translate(shared.HARMLESS))
        status = status if is_equal else DIFFERS
    if left_out := checks.left_out():
        sys.stdout.write(f"not checked: {', '.join(left_out)}\n")
    if status:
        raise typer.Exit(status)


@dataclass
class _Checks:
    """The checks that were asked for. The model is loaded for the first certificate that needs it."""

    recompile: bool
    path: Path | None
    prompt: str | list[int] | None
    public_key: bytes | None
    n_threads: int | None
    n_gpu_layers: int | None
    tables: Mapping[str, Any] | None
    _loaded: tuple[int, Model] | None = None

    def run(self, certificate: dict[str, Any], before: str | None) -> tuple[str, list[str], bool]:
        """Checks one certificate; returns its hash, what was found, and whether the model writes the same answer.

        ``before``: hash of the certificate before it. Raises ``ValueError`` and ``ConstrainError``.
        """
        sha256 = verify_certificate(certificate, before, self.tables)
        count = len(certificate["tokens"])
        said = [f"the text of {count} tokens is one of the grammar, within its budget", _judge(certificate)]
        is_equal = True
        try:
            if self.public_key is not None:
                verify_signature(certificate, self.public_key)
                said.append("the signature is by this key")
            if self.recompile:
                said.append(self._recompile(certificate))
            if self.path is not None:
                found = self._replay(certificate)
                is_equal = found is None
                said.append("the model writes the same answer" if found is None else _describe(found))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the certificate lacks what this check needs: {error!r}") from error
        return sha256, [*said, f"sha256 {sha256}"], is_equal

    def left_out(self) -> list[str]:
        """Returns what was not checked."""
        found = [] if self.public_key is not None else ["signatures (--public-key)"]
        if self.path is not None:
            return found
        if not self.recompile:
            found.append("whether grammars are those of their schemas (--recompile)")
        return [*found, "whether the model writes these tokens for the prompt (--model)"]

    def _recompile(self, certificate: dict[str, Any]) -> str:
        from constrain.generation.observers.certificate.replay import names_tokens, recompile

        vocabulary = None if self.path is None else self._model(certificate).vocabulary
        recompile(certificate, vocabulary)
        left_out = vocabulary is None and names_tokens(certificate)
        return "the source gives this grammar" + (", but for ids of tokens, which need --model" if left_out else "")

    def _replay(self, certificate: dict[str, Any]) -> Difference | None:
        from constrain.generation.observers.certificate.replay import replay

        model = self._model(certificate)
        with shared.show_progress(Console(stderr=True), "Writing the answer again"):
            return replay(model, certificate, self.prompt)

    def _model(self, certificate: dict[str, Any]) -> Model:
        from constrain.llama.model import Model

        needed = int(certificate["model"]["n_ctx"])
        if self._loaded is None or self._loaded[0] != needed:
            if self._loaded is not None:
                self._loaded[1].close()
            layers = shared.ALL_LAYERS if self.n_gpu_layers is None else self.n_gpu_layers
            with shared.show_progress(Console(stderr=True), f"Loading {self.path}"):
                loaded = Model(self.path, n_ctx=needed, n_threads=self.n_threads, n_gpu_layers=layers)
            self._loaded = needed, loaded
        return self._loaded[1]


def require_certificate(path: Path | None, key: Path | None, *, with_prompt: bool) -> bool | Literal["prompt"]:
    """Returns the option ``certificate`` for the flags of ``generate``.

    Raises ``BadParameter`` for flags that do not go together and for a file that cannot be written, and ``OSError`` and
    ``ValueError`` for a key that cannot be used.
    """
    asked = {"--certificate": path is not None, "--certificate-prompt": with_prompt, "--sign": key is not None}
    flags.refuse_together(**asked)
    if path is None:
        return False
    require_place(path, "--certificate")
    if key is not None:
        try:
            with _named(key):
                read_private_key(key.read_bytes())
        except ModuleNotFoundError as error:
            raise typer.BadParameter(str(error), param_hint="--sign") from error
    return "prompt" if with_prompt else True


def write_certificate(path: Path, completion: Completion, key: Path | None) -> None:
    """Writes the certificate of an answer as one line of canonical JSON, whole or not at all.

    Raises ``OSError``, and ``ValueError`` for an answer whose certificate took too long.
    """
    from constrain.private_folders import replace_file

    certificate = completion.certificate
    if certificate is None:
        raise ValueError(f"{path} was not written: the proof met the limit {completion.limits_met[-1]}")
    if key is not None:
        certificate = sign(certificate, key.read_bytes())
    replace_file(path, f"{canonical(certificate)}\n".encode())


def _read(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Returns the certificates in a file, or those of the answers of a batch, with their places.

    Raises ``OSError`` and ``ValueError``.
    """
    texts = re.split(rb"\n(?=\{)", path.read_bytes().strip())
    found = []
    for number, text in enumerate(texts, 1):
        name = str(path) if len(texts) == 1 else f"{path}, certificate {number}"
        try:
            given = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{name}: this is no JSON: {error}") from error
        certificate = given.get("certificate", given) if isinstance(given, dict) else given
        if not isinstance(certificate, dict):
            raise ValueError(f"{name}: this is no certificate, but a JSON {type(certificate).__name__}")  # noqa: TRY004
        found.append((name, certificate))
    return found


def _read_prompt(path: Path) -> str | list[int]:
    text = shared.read_text(path)
    try:
        ids = json.loads(text)
    except ValueError:
        return text
    return ids if isinstance(ids, list) and all(type(each) is int for each in ids) else text


def _judge(certificate: dict[str, Any]) -> str:
    """Says how jsonschema judges the text by the schema; numbers are read exactly and as doubles."""
    said = judge(certificate)
    if said != JUDGED or certificate["source"]["policies"]["precision"] == "decimal":
        return said
    said = judge(certificate, read=_double)
    return f"{JUDGED}, with numbers as decimals and as doubles" if said == JUDGED else said


def _double(text: str) -> int | Decimal:
    """Returns the double that most readers make of a number, exactly; of a number that is too large, the number."""
    return exact(repr(float(text)) if math.isfinite(float(text)) else text)


def _describe(found: Difference) -> str:
    written, repeated = ("the end" if each is None else repr(each) for each in (found.written, found.repeated))
    where = "token of the draft" if found.in_draft else "token"
    return (
        f"DIFFERENT: {where} {found.number} is {written} in the certificate, and the model writes {repeated} now; that "
        "the text is one of the grammar is true all the same"
    )


@contextlib.contextmanager
def _named(path: Path | None) -> Iterator[None]:
    """Names a file in errors about its content."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
