"""A driver for the tables of a parser that the ``lark`` package has made: trees as the package makes them, sooner.

The package keeps lines and columns, and hashes a rule for each reduction. Here, a word has its place alone, and rules
are looked up once, when the driver is made. Texts that are not in the language are left to the package, which says why,
and so are all texts in another version of the package.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from constrain.lark.reading.tables import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from lark import Lark

_END = "$END"
_KEPT = 4
"""Drivers that are kept: one for each kind of grammar texts."""


@lru_cache(maxsize=_KEPT)
def driver(parser: Lark) -> Callable[[str], Any]:
    """Returns a function from a text to its tree; ``None`` if the text is not in the language.

    ``parser``: one with the options ``parser="lalr"`` and ``lexer="contextual"``.
    """
    import lark
    from lark import Token
    from lark.parsers.lalr_analysis import Shift

    if lark.__version__ != VERSION:  # the tables inside a parser are made otherwise
        return lambda _: None
    frontend: Any = parser.parser
    table, callbacks = frontend.parser.parser.parse_table, frontend.parser.parser.callbacks
    (start,), (end,) = table.start_states.values(), table.end_states.values()
    # By state, what to do at a word or rule: go to another state, or make a tree of the last parts.
    actions: dict[int, dict[str, Any]] = {
        state: {
            name: target if action is Shift else (len(target.expansion), target.origin.name, callbacks[target])
            for name, (action, target) in row.items()
        }
        for state, row in table.states.items()
    }
    scanners: dict[int, tuple[list[Any], Any, Any]] = {}  # by state; few are needed for most texts

    def scanner(state: int) -> tuple[list[Any], Any, Any]:
        lexer = frontend.lexer.lexers[state]
        made = scanners[state] = [mre.match for mre in lexer.scanner._mres], lexer.ignore_types, lexer.callback
        return made

    make_token: Any = Token._future_new

    def read(text: str) -> Any:
        states, values = [start], []
        place, last = 0, len(text)
        while True:
            token, kind = None, _END
            if place < last:
                matches, ignored, changes = scanners.get(states[-1]) or scanner(states[-1])
                for match in matches:
                    found = match(text, place)
                    if found:
                        break
                else:
                    return None
                begin, place = place, found.end()
                kind = found.lastgroup
                if kind in ignored:
                    continue
                token = make_token(kind, found[0], begin)
                if kind in changes:
                    token = changes[kind](token)
                    kind = token.type
            while True:
                action = actions[states[-1]].get(kind)
                if action is None:
                    return None
                if not isinstance(action, tuple):
                    states.append(action)
                    values.append(token)
                    break
                count, name, make = action
                parts = []
                if count:
                    parts = values[-count:]
                    del values[-count:], states[-count:]
                states.append(actions[states[-1]][name])
                values.append(make(parts))
                if token is None and states[-1] == end:
                    return values[-1]

    return read
