"""A tokenizer that has the tags of all families as special tokens, and a token for each character."""

from __future__ import annotations

from collections.abc import Sequence

from constrain.vocabulary.tokenizer import SpecialToken

_TAGS = """
    <bos> <eos> <|im_start|> <|im_end|> <|endoftext|> <tool_call> </tool_call> <tool_response> </tool_response> <tools>
    </tools> <think> </think> <|start_header_id|> <|end_header_id|> <|eot_id|> <|eom_id|> <|python_tag|>
    <|python_start|> <|python_end|> [INST] [/INST] [TOOL_CALLS] [ARGS] [CALL_ID] [TOOL_RESULTS] [/TOOL_RESULTS]
    [TOOL_CONTENT] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [THINK] [/THINK] <function=
    </function> <parameter= </parameter> <｜User｜> <｜Assistant｜> <｜end▁of▁sentence｜> <｜tool▁calls▁begin｜>
    <｜tool▁calls▁end｜> <｜tool▁call▁begin｜> <｜tool▁call▁end｜> <｜tool▁sep｜> <｜tool▁outputs▁begin｜>
    <｜tool▁outputs▁end｜> <｜tool▁output▁begin｜> <｜tool▁output▁end｜> <|system|> <|user|> <|assistant|> <|tool|>
    <|/tool|> <|tool_call|> <|/tool_call|> <|tool_response|> <|end|> <start_of_turn> <end_of_turn>
    <|START_OF_TURN_TOKEN|> <|END_OF_TURN_TOKEN|> <|SYSTEM_TOKEN|> <|USER_TOKEN|> <|CHATBOT_TOKEN|> <|START_ACTION|>
    <|END_ACTION|> <|START_TOOL_RESULT|> <|END_TOOL_RESULT|> <|START_THINKING|> <|END_THINKING|> <|START_RESPONSE|>
    <|END_RESPONSE|> <|start|> <|message|> <|channel|> <|constrain|> <|call|> <|return|> >>> <sop> [gMASK] functools[
"""

TAGS = _TAGS.split()


class Characters:
    """The tokenizer: tags have the ids from 1 on, characters those from 1000 on."""

    def __init__(self, tags: Sequence[str] = TAGS) -> None:
        longest_first = sorted(tags, key=lambda tag: -len(tag.encode()))
        self.special_tokens = tuple(SpecialToken(i, t, False, False) for i, t in enumerate(longest_first, 1))
        self.adds_bos, self.bos, self.eos = False, self.id("<bos>"), self.id("<eos>")

    def id(self, name: str) -> int:
        return next(token.id for token in self.special_tokens if token.text == name)

    def name(self, token: int) -> str:
        return self.special_tokens[token - 1].text

    def with_bos(self, tokens: list[int]) -> list[int]:
        return tokens

    def tokenize(self, text: str) -> list[int]:
        return [1000 + ord(character) for character in text]

    def text(self, tokens: list[int]) -> str:
        return "".join(chr(token - 1000) for token in tokens if token >= 1000)
