"""An incremental reader of JSON text, which finds the values of some fields.

The text is known to be the beginning of a JSON text: a mask allows nothing else. States are tuples that are never
changed, so that all copies of a matcher share them.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from constrain.json_schema.stages.pointers import ITEM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.json_schema.stages.pointers import Path

_VALUE, _KEY, _COLON, _AFTER, _STRING, _KEY_STRING, _SCALAR, _SKIPPED, _SKIPPED_STRING = range(9)
"""What the next byte belongs to: a value, a key or the end of an object, a colon, a comma or an end, the inside of a
string, of a key, of a number or name, of an array or object in which no source lies, of a string in it."""

_IN_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_IN_SCALAR = re.compile(rb"[^,\]} \t\n\r]*")
_NO_BRACKET = re.compile(rb'[^"\[\]{}]*')
_SPACE = re.compile(rb"[ \t\n\r]*")


class Node(NamedTuple):
    """A value in which sources lie, or a source.

    ``prefix``: number of items that have nodes of their own. ``closes``: a source that cannot come any more when the
    array ends, if that is told; -1 otherwise.
    """

    keys: Mapping[bytes, Node]
    """By the bytes of a key without its quotes."""
    first: Mapping[int, Node]
    prefix: int
    items: Node | None
    source: int
    closes: int


def make_node(
    sources: Mapping[Path, int], prefixes: Mapping[Path, int], closing: Mapping[Path, int], path: Path = ()
) -> Node:
    """Returns the node of a path.

    ``prefixes``: numbers of first items with schemas of their own, by path; ``closing``: sources by arrays' paths.
    """
    steps = dict.fromkeys(
        other[len(path)] for other in sources if len(other) > len(path) and other[: len(path)] == path
    )
    inner = {step: make_node(sources, prefixes, closing, (*path, step)) for step in steps}
    return Node(
        {step.encode(): node for step, node in inner.items() if isinstance(step, str)},
        {step: node for step, node in inner.items() if isinstance(step, int)},
        prefixes.get(path, 0),
        inner.get(ITEM),
        sources.get(path, -1),
        closing.get(path, -1),
    )


Frame = tuple["Frame | None", Node, int, tuple[int, ...]]
"""An open object or array: the one around it, its node, the index of the present item (-1 in an object), and the
indices of the items around it."""

State = tuple[int, "Frame | None", "Node | None", "bytes | None", int, bool, int]
"""What comes next, the innermost open object or array, the node of the present value, the text so far of a key or
source, the depth of a skipped value, whether the text ends in a backslash, and the number of sources, or of items in
them, that have begun."""

Found = tuple[int, tuple[int, ...], bytes]
"""Number of a source, indices of the items that it lies in, and its JSON text; empty for the end of their array."""


def begin(root: Node) -> State:
    """Returns the state at the beginning of a text."""
    return _VALUE, None, root, None, 0, False, 0


def source_inside(state: State) -> int:
    """Returns the number of the source in whose value the text ends, or which comes next; -1 for none."""
    mode, frame, node, text, *_ = state
    if mode == _VALUE and frame is not None and frame[2] >= 0:
        node = _item(frame)
    elif text is None and mode not in (_COLON, _VALUE):
        return -1
    return -1 if mode == _KEY_STRING or node is None else node.source


def is_over(state: State) -> bool:
    """Returns whether no source can come any more: the whole text has ended, or is a value in which none lies."""
    return state[0] != _VALUE and state[1] is None


def read(state: State, data: bytes) -> tuple[State, list[Found]]:  # noqa: C901 - one loop, as it runs for each token
    """Returns the state after further bytes, and the sources that end in them."""
    mode, frame, node, text, depth, escaped, begun = state
    found: list[Found] = []
    at, end = 0, len(data)
    while at < end:
        if mode >= _STRING:
            begins = at
            if mode in (_STRING, _KEY_STRING, _SKIPPED_STRING):
                if escaped:
                    at, escaped = at + 1, False
                at = _end(_IN_STRING, data, at)
                if at == end:
                    pass
                elif data[at] == 0x5C:
                    escaped, at = True, end
                else:
                    at += 1
                    closed = mode
                    mode = _SKIPPED if mode == _SKIPPED_STRING else _COLON if mode == _KEY_STRING else _AFTER
                    if text is not None:
                        text += data[begins:at]
                        if closed == _KEY_STRING:
                            assert frame is not None
                            node = _member(frame[1], text)
                            begun += _is_source(node)
                            text = None
                        elif closed == _STRING:
                            found.append(_found(frame, node, text))
                            text = None
                    continue
            elif mode == _SCALAR:
                at = _end(_IN_SCALAR, data, at)
                if at < end:
                    mode = _AFTER
                    if text is not None:
                        found.append(_found(frame, node, text + data[begins:at]))
                        text = None
                    continue
            else:
                at = _end(_NO_BRACKET, data, at)
                if text is not None:
                    begun += data.count(b",", begins, at)
                if at < end:
                    byte = data[at]
                    at += 1
                    if byte == 0x22:
                        mode = _SKIPPED_STRING
                    else:
                        depth += 1 if byte in b"[{" else -1
                        if not depth:
                            mode = _AFTER
                            if text is not None:
                                found.append(_found(frame, node, text + data[begins:at]))
                                text = None
                            continue
            if text is not None:
                text += data[begins:at]
            continue
        at = _end(_SPACE, data, at)
        if at == end:
            break
        byte = data[at]
        if mode == _VALUE:
            if byte == 0x5D:  # an empty array
                mode = _AFTER
                continue
            if frame is not None and frame[2] >= 0:
                node = _item(frame)
            is_source = _is_source(node)
            if byte == 0x22:
                mode = _STRING
            elif byte not in b"[{":
                mode = _SCALAR
                text = b"" if is_source else None
                continue
            elif node is not None and not is_source and (node.items or node.first if byte == 0x5B else node.keys):
                indices = () if frame is None else _indices(frame)
                frame = (frame, node, 0 if byte == 0x5B else -1, indices)
                mode = _VALUE if byte == 0x5B else _KEY
                begun += byte == 0x5B and _is_source(_item(frame))
            else:
                mode, depth = _SKIPPED, 1
            text = data[at : at + 1] if is_source else None
        elif mode == _KEY:
            if byte == 0x22:
                mode, text = _KEY_STRING, b'"'
            elif byte == 0x7D:
                mode = _AFTER
                continue
        elif mode == _COLON:
            mode = _VALUE
        else:  # after a value
            assert frame is not None
            if byte == 0x2C:
                mode = _KEY if frame[2] < 0 else _VALUE
                if frame[2] >= 0:
                    frame = (frame[0], frame[1], frame[2] + 1, frame[3])
                    begun += _is_source(_item(frame))
            else:
                if byte == 0x5D and frame[1].closes >= 0:
                    found.append((frame[1].closes, frame[3], b""))
                frame = frame[0]
        at += 1
    return (mode, frame, node, text, depth, escaped, begun), found


def _end(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    found = pattern.match(data, at)
    assert found is not None
    return found.end()


def _is_source(node: Node | None) -> bool:
    return node is not None and node.source >= 0


def _member(node: Node, quoted: bytes) -> Node | None:
    key = quoted[1:-1]
    if b"\\" in key:
        key = json.loads(quoted).encode("utf-8", "surrogatepass")
    return node.keys.get(key)


def _item(frame: Frame) -> Node | None:
    _, node, index, _ = frame
    return node.first.get(index) if index < node.prefix else node.items


def _indices(frame: Frame) -> tuple[int, ...]:
    """Returns the indices of the items around the present member or item."""
    _, node, index, indices = frame
    return (*indices, index) if index >= node.prefix and index >= 0 else indices


def _found(frame: Frame | None, node: Node | None, text: bytes) -> Found:
    assert node is not None
    return node.source, () if frame is None else _indices(frame), text
