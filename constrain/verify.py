"""Checks the certificate of an answer. Runs alone: ``python verify.py certificate.json ...``.

It shares no code with the engine. It checks that tokens spell the text and that the derivation is one of the grammar,
with its memory, limits on tokens, budget and hashes; not that the grammar is the schema's or the tokens a model's.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    sys.path = [each for each in sys.path if not each.endswith("constrain")]  # its ``types`` is not Python's

import hashlib
import json
import re
from pathlib import Path
from typing import Any

FORMAT = "constrain certificate 1"
NUMBER = re.compile(rb"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]+))?")
DECIMAL = re.compile(rb"-?([0-9]+)(?:\.([0-9]+))?")
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
LETTERS = dict(zip(b'"\\bfnrt', b'"\\\b\f\n\r\t', strict=True))
WIDE = rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
BYTE = re.compile(b".", re.DOTALL)
CHARACTER = re.compile(rb"[\x00-\x7f]|" + WIDE)
SPELLED = re.compile(rb'\\(?:(["\\bfnrt])|u00(0[0-7bef]|1[0-9a-f]))|[^\x00-\x1f"\\\x80-\xff]|' + WIDE)
SPECIAL = re.compile(rb"\xff([^\xfe\xff]+)\xfe")
SCALAR, LABEL, ORDERED, LABELLED, CLOSE = 1, 2, 3, 4, 5


def require(holds: object, message: str) -> None:
    """Raises ValueError unless a condition holds: the certificate is refused."""
    if not holds:
        raise ValueError(message)


def digest(value: object) -> str:
    """Returns the SHA-256 of canonical JSON: sorted keys, no white space, ASCII."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def data(written: Any) -> bytes:
    """Returns bytes, which stand as text, or as ``{"hex": ...}`` if they are not UTF-8."""
    return written.encode() if isinstance(written, str) else bytes.fromhex(written["hex"])


class Match:
    """Matches of expressions in the text of one lexeme. A set of places in it is a number: its bits."""

    def __init__(self, nodes: list[Any], text: bytes) -> None:
        self.nodes, self.text, self.everywhere = nodes, text, (2 << len(text)) - 1
        self.known: dict[tuple[int, int], int] = {}

    def ends(self, node: int, starts: int) -> int:
        """Returns the places where matches end that begin at some places. No recursion: expressions are deep."""
        found, under_way = None, [((node, starts), self.steps(node, starts))]
        while under_way:
            key, steps = under_way[-1]
            try:
                asked = steps.send(found)
                if (found := self.known.get(asked)) is None:
                    under_way.append((asked, self.steps(*asked)))
            except StopIteration as end:
                found = end.value
                if self.nodes[key[0]][0] != "class":
                    self.known[key] = end.value
                under_way.pop()
        return found or 0

    def steps(self, node: int, starts: int) -> Any:
        """Finds the ends of an expression: yields parts with begins of matches, takes their ends."""
        (kind, *parts), found = self.nodes[node], 0
        for part in parts[0] if starts and kind in ("all", "any") else ():
            found = (yield part, starts) | (found if kind == "any" else 0)
            starts = found if kind == "all" else starts
        if kind in ("all", "any"):
            return found if kind == "any" else starts
        while starts:
            at, rest = (starts, 0) if kind == "repeat" else ((starts & -starts).bit_length() - 1, starts & (starts - 1))
            made, starts = getattr(self, f"_{kind}")(at, *parts), rest
            found |= made if isinstance(made, int) else (yield from made)
        return found

    def character(self, at: int, how: str) -> tuple[int, int]:
        """Returns the byte or character at a place, -1 for none, and the place behind it."""
        found = {"byte": BYTE, "char": CHARACTER, "json": SPELLED}[how].match(self.text, at)
        if found is None:
            return -1, at
        if how == "json" and found.lastindex:
            return LETTERS[found[1][0]] if found[1] else int(found[2], 16), found.end()
        return found[0][0] if how == "byte" else ord(found[0].decode(errors="ignore") or "\udc00"), found.end()

    def _class(self, at: int, ranges: list[list[int]], how: str) -> int:
        code, end = self.character(at, how)
        return any(low <= code <= high for low, high in ranges) << end

    def _repeat(self, starts: int, part: int, least: int, most: int | None) -> Any:
        found, count, places = 0 if least else starts, 0, starts
        while places and count != most:
            after, count = (yield part, places), count + 1
            count = max(count, least * (after == places))  # the part matches the empty text, and nothing more
            if count > least and not after & ~found:
                break
            places, found = after & ~(found if most is None else 0), found | after * (count >= least)
        return found

    def _literal(self, at: int, texts: list[Any]) -> int:
        return sum({1 << at + len(text) for text in map(data, texts) if self.text.startswith(text, at)})

    def _both(self, at: int, parts: list[int]) -> Any:
        found = self.everywhere
        for part in parts:
            found &= yield part, 1 << at
        return found

    def _not(self, at: int, part: int) -> Any:
        return self.everywhere & -(1 << at) & ~(yield part, 1 << at)

    def _multiple(self, at: int, divisor: int, scale: int) -> int:
        reads = [DECIMAL.fullmatch(self.text, at, end) for end in range(at + 1, len(self.text) + 1)]
        numbers = [(read.end(), int(read[1] + (read[2] or b"")), len(read[2] or b"")) for read in reads if read]
        return sum(1 << end for end, digits, point in numbers if digits * 10**scale % (divisor * 10**point) == 0)

    def _window(self, at: int, part: int, unit: int, least: int, most: int | None) -> Any:
        places, allowed, count, last, fits = 1 << at, 0, 0, 0, False
        while places:
            last, fits = places, count >= least and (most is None or count <= most)
            allowed |= places * fits
            places, count = (yield unit, places), count + 1
        return (yield part, 1 << at) & (allowed | -2 * last * fits)  # what is no unit may follow the last one

    def _substring(self, at: int, texts: list[str], least: int, most: int | None, how: str, cuts: list[str]) -> int:
        ends, chars = [at], ""
        while len(chars) != most and (char := self.character(ends[-1], how))[0] >= 0:
            chars += chr(char[0])
            ends.append(char[1])
        found = 0 if least else 1 << at
        for number, text in enumerate(texts):
            marks = cuts[number] + "1" if cuts else "1" * (len(text) + 1)
            for begin in [begin for begin, char in enumerate(text) if char == chars[:1] and marks[begin] == "1"]:
                size = 1
                while size <= len(chars) and text.startswith(chars[size - 1], begin + size - 1):
                    found |= (size >= least and marks[begin + size] == "1") << ends[size]
                    size += 1
        return found


class Reader:
    """A derivation that is being read: the rules under way, their memory, and the values of open groups."""

    def __init__(self, certificate: dict[str, Any]) -> None:
        self.grammar, self.tokens = certificate["grammar"], certificate["tokens"]
        self.text, self.at, self.step = b"", 0, 0
        self.starts: dict[int, int] = {}
        for number, (_, written, *name) in enumerate(self.tokens):
            self.starts[len(self.text)] = number
            self.text += data(written) or b"\xff" + name[0].encode() + b"\xfe"
        self.starts[len(self.text)] = len(self.tokens)
        self.matched: dict[tuple[int, bytes], bool] = {}
        self.groups: list[list[Any]] = [[ORDERED, None, []]]  # kind, label of the next member, members

    def read(self, steps: list[Any]) -> None:
        """Reads all steps. Raises ValueError."""
        stack = [self.begun(0, -1)]
        for self.step, step in enumerate(steps):
            rule, state, _, begin, distinct = stack[-1]
            index, end = step if isinstance(step, list) else (step, None)
            if index >= 0:
                self.edge(stack, rule["edges"][index], end)
            elif end is not None:
                require(~index in self.grammar["ignored"], f"terminal {~index} is not ignored")
                self.lexeme(~index, end)
            else:
                require(index == -1 and state in rule["accepting"], f"rule {rule['name']} cannot end in state {state}")
                if (most := rule.get("max_tokens")) is not None:
                    is_whole = {begin, self.at} <= self.starts.keys() and self.starts[self.at] - self.starts[
                        begin
                    ] <= most
                    require(is_whole, f"rule {rule['name']} is not {most} whole tokens or less")
                stack.pop()
                if distinct >= 0:
                    self.add_new(stack[-1][2][distinct], self.groups[-1][2][-1])
        require(not stack and self.at == len(self.text), "the derivation ends before the text")

    def begun(self, rule: int, distinct: int) -> list[Any]:
        """Returns a new use of a rule: the rule, its state, its memory, its begin, and the slot for its value."""
        made = self.grammar["rules"][rule]
        return [made, 0, [0 if slot >= 0 else set() for slot in made["slots"]], self.at, distinct]

    def edge(self, stack: list[list[Any]], edge: list[Any], end: int | None) -> None:
        """Takes one edge of the rule that is being read."""
        source, symbol, target, conditions, actions, excluding, distinct = edge
        (rule, state, memory, _, _), begin = stack[-1], self.at
        require(source == state, f"the edge begins in state {source} of rule {rule['name']}, not in {state}")
        for slot, least, most in conditions:
            holds = least <= memory[slot] and (most is None or memory[slot] <= most)
            require(holds, f"counter {slot} of rule {rule['name']} is {memory[slot]}, not {least} to {most}")
        require((end is not None) == (symbol is not None and symbol >= 0), "the edge and the step differ in kind")
        if end is not None:
            self.lexeme(symbol, end)
            text = self.text[begin:end]
            require(excluding < 0 or self.common(text) not in memory[excluding], f"{text!r} stands there again")
            if distinct >= 0:
                self.add_new(memory[distinct], self.common(text, by_value=True))
        for action, slot in actions:
            if action == 0:
                memory[slot] = min(memory[slot] + 1, rule["slots"][slot])
            else:
                memory[slot].add(self.common(self.text[begin : self.at]))
        stack[-1][1] = target
        if symbol is not None and symbol < 0:
            stack.append(self.begun(~symbol, distinct))

    def add_new(self, known: set[Any], value: object) -> None:
        """Adds to a set of what must differ."""
        require(value not in known, f"{value!r:.80} stands there again, but must differ")
        known.add(value)

    def lexeme(self, index: int, end: Any) -> None:
        """Reads one lexeme."""
        terminal, begin = self.grammar["terminals"][index], self.at
        require(type(end) is int and begin < end <= len(self.text), f"no lexeme ends at {end!r}")
        text, ids = self.text[begin:end], terminal.get("tokens")
        if ids is not None:  # one whole token, of those with these ids
            number = self.starts.get(begin, len(self.tokens))
            is_token = self.starts.get(end) == number + 1
            self.matched[index, text] = is_token and any(low <= self.tokens[number][0] <= high for low, high in ids)
        elif (index, text) not in self.matched:
            ends = Match(self.grammar["expressions"], text).ends(terminal["expression"], 1) >> 1
            is_first = not terminal.get("lazy") or not ends & (ends - 1)
            self.matched[index, text] = ends >> len(text) - 1 == 1 and is_first and not {0xFE, 0xFF} & {*text}
        require(self.matched[index, text], f"terminal {terminal['name']} does not match {text!r:.80}")
        if (most := terminal.get("max_tokens")) is not None:
            require(sum(begin <= start < end for start in self.starts) <= most, f"more than {most} tokens")
        self.at = end
        self.add_to_value(terminal, text)

    def common(self, text: bytes, *, by_value: bool = False) -> object:
        """Returns what texts that count as equal have in common; ``by_value``: also all texts of a number."""
        if (number := NUMBER.fullmatch(text) if by_value else None) is None:
            string = STRING.match(text) if self.grammar["strings_by_value"] else None
            return (json.loads(string[0], strict=False), text[string.end() :]) if string else text
        if self.grammar["numbers_by_double"] and abs(value := float(text)) != float("inf"):
            return value
        digits = (number[2] + (number[3] or b"")).lstrip(b"0")
        exponent = int(number[4] or 0) - len(number[3] or b"") + len(digits) - len(digits.rstrip(b"0"))
        return (number[1], digits.rstrip(b"0"), exponent) if digits else 0.0

    def add_to_value(self, terminal: dict[str, Any], text: bytes) -> None:
        """Adds a lexeme to the value of the group in which it stands."""
        role, group = terminal.get("role", SCALAR), self.groups[-1]
        if role in (ORDERED, LABELLED):
            self.groups.append([role, None, []])
        elif role == LABEL:
            group[1] = data(terminal["label"]) if terminal.get("label") else self.common(text)
        elif role == SCALAR or (role == CLOSE and len(self.groups) > 1):
            value = self.common(text, by_value=True) if role == SCALAR else ()
            if role == CLOSE:
                kind, _, members = self.groups.pop()
                value, group = (kind, (tuple if kind == ORDERED else frozenset)(members)), self.groups[-1]
            group[2].append((group[1], value) if group[0] == LABELLED else value)


def verify(certificate: dict[str, Any]) -> str:
    """Checks one certificate and returns its hash. Raises ValueError."""
    body = {name: value for name, value in certificate.items() if name != "sha256"}
    require(body["format"] == FORMAT, f"this is no {FORMAT}")
    require(certificate["sha256"] == digest(body), "the hash of the certificate does not agree")
    require(body["grammar_sha256"] == digest(body["grammar"]), "the hash of the grammar does not agree")
    reader = Reader(body)
    require(SPECIAL.sub(b"", reader.text) == data(body["text"]), "the tokens do not spell the text")
    try:
        reader.read(body["derivation"])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"step {reader.step} of the derivation, at byte {reader.at}: {error}") from error
    count, limit = len(reader.tokens), body["budget"]["max_tokens"]
    needed = body["budget"]["needed"] or [0] * (count + 1)
    fits = limit is None or all(number + least <= limit for number, least in enumerate(needed))
    require(fits and len(needed) == count + 1 and needed[-1] == 0, f"the budget of {limit} tokens was not kept")
    return str(certificate["sha256"])


def main(paths: list[str], before: str | None = None) -> int:
    """Checks files in order; each may name the hash of the one before it. Returns the exit status."""
    for path in paths:
        try:
            certificate = json.loads(Path(path).read_bytes())
            require(before is None or certificate["previous"] in (None, before), "another certificate came before")
            before = verify(certificate)
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            print(f"{path}: refused: {error!r}")
            return 1
        print(f"{path}: holds, sha256 {before}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
