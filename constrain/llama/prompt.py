"""Prompts: messages through the model's chat template to token ids.

What a message says must never act as the template's own marks; nor must tools, arguments and results, of which
``constrain.chat.prompt.conversation`` makes prompts. Therefore a noncharacter (a code point that Unicode reserves for a
program's own use) is put into every special token's text found in them before the template is rendered; afterwards only
the template's text can still match a special token, whatever the template did to the messages: trim, split, or repeat
them. The noncharacter is taken out again before the text is tokenized.

A template may also join parts of a message, and so make a special token's text that was not there before. To notice,
the prompt is rendered a second time with every character marked that can begin a special token. If both renderings
name the same special tokens, the first is used (there the template sees tags such as ``</think>`` as they are),
otherwise the second, in which nothing in a message can be special.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from constrain.llama.template import render

if TYPE_CHECKING:
    from constrain.vocabulary.tokenizer import SpecialToken, Tokenizer

Message = Mapping[str, str]
"""A chat message: ``{"role": "user", "content": "..."}``."""

Mark = Callable[[str], str]
"""Marks a text that is not trusted, so that nothing in it is taken for a special token."""

REMINDER = "Answer in the format above."
"""What stands in later messages of the user in place of a schema."""

_NONCHARACTERS = [chr(code) for code in range(0xFDD0, 0xFDF0)]
_ROLE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def is_plain(prompt: object) -> bool:
    """Whether a prompt is a text, or messages that are nothing but a role and a text each."""
    if isinstance(prompt, str) or not isinstance(prompt, Sequence):
        return True
    return not any(
        isinstance(message, Mapping)
        and (message.keys() - {"role", "content"} or not isinstance(message.get("content"), str))
        for message in prompt
    )


def as_messages(prompt: str | Sequence[Message]) -> list[dict[str, str]]:
    """A prompt as a list of messages; a text is one message of the user. Raises ``ValueError`` or ``TypeError``."""
    if isinstance(prompt, str):
        require_text(prompt, "the prompt")
        return [{"role": "user", "content": prompt}]
    given: object = prompt
    if isinstance(given, (bytes, bytearray)) or not isinstance(given, Iterable):
        raise TypeError(f"the prompt is {given!r:.80}; it must be a text or a list of messages")
    messages = []
    for index, message in enumerate(given):
        if not isinstance(message, Mapping) or set(message) != {"role", "content"}:
            raise ValueError(f"message {index} is not of the form {{'role': ..., 'content': ...}}: {message!r}")
        role, content = message["role"], message["content"]
        if not isinstance(content, str):
            raise TypeError(f"message {index}: the content is {type(content).__name__}, not a string")
        require_text(content, f"message {index}: the content")
        if not isinstance(role, str) or not _ROLE.fullmatch(role):
            raise ValueError(f"message {index}: {role!r} is not a role")
        messages.append({"role": role, "content": content})
    if not messages:
        raise ValueError("the prompt has no messages")
    return messages


def require_text(text: str, name: str) -> None:
    """Raises ``ValueError`` for what Python takes for a text, but no encoding does."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"half of a surrogate pair (U+{ord(text[error.start]):04X}) at character {error.start}"
        raise ValueError(f"{name} holds {half}; that is no text") from error


def texts_beside(said: Sequence[tuple[str, str]], shown: str) -> dict[int, str]:
    """The messages that say what the answer must be, by their index, with their new texts: those of the user.

    The first has ``shown`` in front of its text, so that requests which ask for the same begin alike, whatever the user
    says, and what the model has read for one it need not read again for the others. The later ones end with a reminder:
    a conversation that goes on begins as it did. Where no user spoke, it is the last message of all.

    Args:
        said: each message's role and text.
        shown: what the model is told of its answer.
    """
    first, *later = [index for index, (role, _) in enumerate(said) if role == "user"] or [len(said) - 1]
    texts = {first: _joined(shown, said[first][1])}
    return texts | {index: _joined(said[index][1], REMINDER) for index in later}


def with_schema(messages: list[dict[str, str]], shown: str) -> list[dict[str, str]]:
    """The messages with what the answer must be: see ``texts_beside``."""
    texts = texts_beside([(message["role"], message["content"]) for message in messages], shown)
    return [
        {**message, "content": texts[index]} if index in texts else message for index, message in enumerate(messages)
    ]


def _joined(*texts: str) -> str:
    """The texts that are not empty, with empty lines between."""
    return "\n\n".join(text for text in texts if text)


def chat_tokens(
    tokenizer: Tokenizer, template: str, messages: list[dict[str, str]], variables: Mapping[str, object]
) -> list[int]:
    """The token ids of a chat, ready for the assistant's answer. Raises ``ModelError`` if the template fails."""

    def write(mark: Mark) -> str:
        marked = [{**message, "content": mark(message["content"])} for message in messages]
        return _render(template, marked, {**variables, **token_names(tokenizer)})

    return guarded_tokens(tokenizer, [template, *(message["content"] for message in messages)], write)


def token_names(tokenizer: Tokenizer) -> dict[str, str]:
    """The variables by which templates name the tokens that begin and end a text."""
    return {"bos_token": tokenizer.name(tokenizer.bos), "eos_token": tokenizer.name(tokenizer.eos)}


def guarded_tokens(tokenizer: Tokenizer, texts: Iterable[str], write: Callable[[Mark], str]) -> list[int]:
    """The token ids of a prompt in which only trusted texts name special tokens.

    Args:
        tokenizer: of the model.
        texts: all texts that the prompt is made of, trusted or not.
        write: writes the prompt; what is not trusted, it passes through its argument first. Called twice.
    """
    specials = tokenizer.special_tokens
    mark = _unused_noncharacter(texts)
    parts = _partition(write(_Marker(specials, mark, every_beginning=False).marked), specials)
    certain = _partition(write(_Marker(specials, mark, every_beginning=True).marked), specials)
    if [part for part in parts if isinstance(part, int)] != [part for part in certain if isinstance(part, int)]:
        parts = certain
    tokens: list[int] = []
    for part in parts:
        tokens += [part] if isinstance(part, int) else tokenizer.tokenize(part.replace(mark, ""))
    return _with_bos(tokenizer, tokens)


def raw_tokens(tokenizer: Tokenizer, messages: list[dict[str, str]]) -> list[int]:
    """The token ids of a prompt without a template: the texts of the messages, with empty lines between."""
    return text_tokens(tokenizer, "\n\n".join(message["content"] for message in messages))


def text_tokens(tokenizer: Tokenizer, text: str) -> list[int]:
    """The token ids of a text that stands for itself, from its beginning."""
    return _with_bos(tokenizer, tokenizer.tokenize(text))


def _with_bos(tokenizer: Tokenizer, tokens: list[int]) -> list[int]:
    """The model's begin-of-sequence token in front, unless the template has written it."""
    if tokenizer.adds_bos and tokens[:1] != [tokenizer.bos]:
        return [tokenizer.bos, *tokens]
    return tokens


def _unused_noncharacter(texts: Iterable[str]) -> str:
    searched = list(texts)
    for character in _NONCHARACTERS:
        if not any(character in text for text in searched):
            return character
    raise ValueError("the messages contain every one of the noncharacters U+FDD0 to U+FDEF")


class _Marker:
    """Puts a mark behind the first character of special tokens' texts, or of whatever might become one."""

    def __init__(self, specials: Sequence[SpecialToken], mark: str, *, every_beginning: bool) -> None:
        self._texts = [special.text for special in specials]
        self._first = {text[0] for text in self._texts}
        self._mark = mark
        self._every_beginning = every_beginning

    def marked(self, content: str) -> str:
        """A text that is not trusted, with its marks."""
        if self._every_beginning:
            return "".join(c + self._mark if c in self._first else c for c in content)
        if self._first.isdisjoint(content):
            return content
        for text in self._texts:
            while text in content:
                content = content.replace(text, text[0] + self._mark + text[1:])
        return content


def _partition(text: str, specials: Sequence[SpecialToken]) -> list[int | str]:
    """Splits a text at special tokens, longest first, as llama.cpp does: ids, and the texts between them."""
    parts: list[int | str] = [text]
    for special in specials:
        if special.text not in text:
            continue
        split: list[int | str] = []
        for part in parts:
            if isinstance(part, int):
                split.append(part)
                continue
            pieces = part.split(special.text)
            for index, piece in enumerate(pieces):
                before = piece.lstrip(_SPACE) if index and special.strips_after else piece
                last = index == len(pieces) - 1
                between = before.rstrip(_SPACE) if not last and special.strips_before else before
                split += [between] if between else []
                split += [] if last else [special.id]
        parts = split
    return parts


_SPACE = " \t\n\v\f\r"
"""What C's ``isspace`` takes for white space."""


def _render(template: str, messages: list[dict[str, str]], variables: Mapping[str, object]) -> str:
    return render(template, {"messages": messages, "add_generation_prompt": True, **variables})
