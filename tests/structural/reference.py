"""A slow judge of structural tags: it follows the formats word by word and knows nothing of grammars."""

from __future__ import annotations

from typing import Any

Format = dict[str, Any]


def accepts(document: Format, text: str) -> bool:
    """Whether a format has this text."""
    return len(text) in _Reader(text).ends(document, 0, ())


class _Reader:
    """The ends of a format's texts at a place of one text. ``stops``: the texts that end the tag around a format."""

    def __init__(self, text: str) -> None:
        self.text = text

    def ends(self, node: Format, at: int, stops: tuple[str, ...]) -> set[int]:
        found: set[int] = getattr(self, "of_" + node["type"])(node, at, stops)
        return found

    def of_const_string(self, node: Format, at: int, _: object) -> set[int]:
        return self.literal(node["value"], at)

    def of_json_schema(self, node: Format, at: int, _: object) -> set[int]:
        """Schemas here are ``{"enum": [...]}`` of integers or lists of them, in one spelling."""
        return {end for value in node["json_schema"]["enum"] for end in self.literal(str(value).replace(" ", ""), at)}

    def of_any_text(self, node: Format, at: int, stops: tuple[str, ...]) -> set[int]:
        ends = self.free(at, {*node.get("excludes", ()), *filter(None, stops)})
        return {end for end in ends if end - at <= node.get("max_chars", len(self.text))}

    def of_sequence(self, node: Format, at: int, stops: tuple[str, ...]) -> set[int]:
        places = {at}
        for element in node["elements"]:
            places = {end for place in places for end in self.ends(element, place, stops)}
        return places

    def of_or(self, node: Format, at: int, stops: tuple[str, ...]) -> set[int]:
        return {end for element in node["elements"] for end in self.ends(element, at, stops)}

    def of_optional(self, node: Format, at: int, stops: tuple[str, ...]) -> set[int]:
        return self.times(node["content"], at, stops, 0, 1)

    def of_star(self, node: Format, at: int, stops: tuple[str, ...]) -> set[int]:
        return self.times(node["content"], at, stops, 0, -1)

    def of_plus(self, node: Format, at: int, stops: tuple[str, ...]) -> set[int]:
        return self.times(node["content"], at, stops, 1, -1)

    def of_repeat(self, node: Format, at: int, stops: tuple[str, ...]) -> set[int]:
        return self.times(node["content"], at, stops, node["min"], node["max"])

    def of_tag(self, node: Format, at: int, _: object) -> set[int]:
        stops = tuple(node["end"]) if isinstance(node["end"], list) else (node["end"],)
        insides = [end for place in self.literal(node["begin"], at) for end in self.ends(node["content"], place, stops)]
        return {end for inside in insides for stop in stops for end in self.literal(stop, inside)}

    def of_triggered_tags(self, node: Format, at: int, stops: tuple[str, ...]) -> set[int]:
        tags = node["tags"]
        if node.get("at_least_one"):
            firsts = {end for tag in tags for end in self.ends(tag, at, stops)}
            if node.get("stop_after_first"):
                return firsts
            return {end for first in firsts for end in self.triggered(node, first, stops)}
        return self.triggered(node, at, stops)

    def triggered(self, node: Format, at: int, stops: tuple[str, ...]) -> set[int]:
        rules = [
            (trigger, {**tag, "begin": tag["begin"][len(trigger) :]})
            for trigger in node["triggers"]
            for tag in node["tags"]
            if tag["begin"].startswith(trigger)
        ]
        return self.dispatched(rules, node.get("excludes", ()), at, stops, loop=not node.get("stop_after_first"))

    def of_dispatch(self, node: Format, at: int, stops: tuple[str, ...]) -> set[int]:
        return self.dispatched(node["rules"], node.get("excludes", ()), at, stops, loop=node.get("loop", True))

    def dispatched(
        self, rules: list[tuple[str, Format]], excludes: tuple[str, ...], at: int, stops: tuple[str, ...], *, loop: bool
    ) -> set[int]:
        """Reads free text up to the first trigger; where several end there, the longest counts."""
        triggers, without = {trigger for trigger, _ in rules}, {*excludes, *filter(None, stops)}
        found: set[int] = set()
        seen: set[int] = set()
        waiting = [at]
        for place in waiting:
            if place in seen:
                continue
            seen.add(place)
            found |= self.free(place, triggers | without)
            first = self.first(place, triggers)
            if first is None or first not in self.free(place, without):
                continue
            longest = max((each for each in triggers if self.text.endswith(each, place, first)), key=len)
            after = [end for trigger, way in rules if trigger == longest for end in self.ends(way, first, stops)]
            if loop:
                waiting += after
            else:
                found |= set(after)
        return found

    def of_tags_with_separator(self, node: Format, at: int, stops: tuple[str, ...]) -> set[int]:
        ends = {end for tag in node["tags"] for end in self.ends(tag, at, stops)}
        seen = set(ends)
        waiting = [] if node.get("stop_after_first") else list(ends)
        for place in waiting:
            for behind in self.literal(node["separator"], place):
                new = {end for tag in node["tags"] for end in self.ends(tag, behind, stops)} - seen
                seen |= new
                waiting += new
        return seen if node.get("at_least_one") else seen | {at}

    def times(self, node: Format, at: int, stops: tuple[str, ...], least: int, most: int) -> set[int]:
        places, found = {at}, {at} if least == 0 else set()
        for count in range(1, max(least, most, len(self.text) + 1) + 1):
            if not places or count > most >= 0:
                break
            places = {end for place in places for end in self.ends(node, place, stops)}
            if count >= least:
                found |= places
        return found

    def literal(self, text: str, at: int) -> set[int]:
        return {at + len(text)} if self.text.startswith(text, at) else set()

    def free(self, at: int, without: set[str]) -> set[int]:
        """The ends of free text that holds none of these texts."""
        first = self.first(at, without)
        return set(range(at, len(self.text) + 1 if first is None else first))

    def first(self, at: int, texts: set[str]) -> int | None:
        """The place where one of the texts ends first; None if there is none."""
        ends = [self.text.index(text, at) + len(text) for text in texts if text in self.text[at:]]
        return min(ends, default=None)
