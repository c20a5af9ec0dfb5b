"""What readers of other libraries' tokenizers share: the token table, as wide as the model, and its encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.arguments import integer, wrong_type
from constrain.errors import ModelError
from constrain.vocabulary.ends import ends_by_name
from constrain.vocabulary.table import MOST_PADDING, make_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from constrain.vocabulary.exact import ExactEncoder
    from constrain.vocabulary.table import TokenTable


class Loaded(NamedTuple):
    """A vocabulary as a library has it."""

    table: TokenTable
    encode: ExactEncoder


class Sizing(NamedTuple):
    """What a caller says of a vocabulary: its ends of generation, by id or name, and the number of ids of the model."""

    eos: Iterable[int | str] | int | str | None
    n_vocab: int | None


def finish_table(texts: list[bytes], special: Mapping[int, str], sizing: Sizing, *, where: str) -> TokenTable:
    """Makes the token table of ``texts``, with the ends and the width that the caller asked for.

    Without ``sizing.eos``, special tokens with the names that llama.cpp knows end a generation. Raises ``ModelError``.
    """
    by_name = {name: token for token, name in special.items()}
    ends = _ends(by_name, sizing.eos, where)
    if not ends:
        raise ModelError(f"{where}: none of its special tokens is known to end a generation; name them with eos=")
    count = len(texts)
    for token in ends:
        if not 0 <= token < count:
            raise ModelError(f"{where}: end-of-generation id {token} is out of range: there are {count} tokens")
    width = count if sizing.n_vocab is None else integer("n_vocab", sizing.n_vocab)
    if width - count > MOST_PADDING:
        raise ModelError(
            f"{where}: n_vocab is {width}, but the tokenizer has {count} tokens; at most {MOST_PADDING} more are "
            f"supported"
        )
    cut = [token for token in range(max(width, 0), count) if token in ends or (texts[token] and token not in special)]
    if cut:
        raise ModelError(f"{where}: n_vocab is {width}, but the tokenizer has the token {cut[0]} ({texts[cut[0]]!r})")
    texts = texts[:width] + [b""] * (width - count)
    kept = {token: name for token, name in special.items() if token < width}
    return make_table(texts, special=kept, eos=ends, where=where)


def _ends(by_name: Mapping[str, int], given: Iterable[int | str] | int | str | None, where: str) -> set[int]:
    """The ids of the ends that a caller names, or those of known names."""
    if given is None:
        return ends_by_name({name.encode(): token for name, token in by_name.items()})
    ends = set()
    for end in [given] if isinstance(given, (int, str)) else given:
        if not isinstance(end, str):
            ends.add(integer("an id of eos", end))
        elif end in by_name:
            ends.add(by_name[end])
        else:
            raise ModelError(f"{where}: eos names {end!r}, but no special token has this name")
    return ends


def require_library(given: object, library: str, name: str, what: str) -> None:
    """Raises ``TypeError`` unless the object is of a class of the library, or of a subclass."""
    names = {(base.__module__.partition(".")[0], base.__name__) for base in type(given).__mro__}
    if (library, name) not in names:
        raise wrong_type(what, f"a {library}.{name}", given)
