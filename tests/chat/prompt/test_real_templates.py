"""Templates and vocabularies of real GGUF files: the tokens are llama.cpp's, and nothing said becomes a special one."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

import constrain
from constrain.chat.families.forms import GENERIC
from constrain.chat.prompt.conversation import ThinkingState, conversation_prompt, format_of
from constrain.chat.prompt.messages import check_messages
from constrain.chat.prompt.shaping import write_calls
from constrain.chat.prompt.template import render
from constrain.vocabulary.tokenizer import Tokenizer
from tests.support import data_folder
from tests.support.chat.conversations import TOOLS, TWO_CALLS
from tests.support.chat.templates import rendered


def tokens_of(model: constrain.Model, messages: list[Any], **other: Any) -> list[int]:
    return conversation_prompt(model.tokenizer, model.chat_template, messages, tools=TOOLS, **other).tokens


def test_the_generic_form_with_smollm2(model: constrain.Model) -> None:
    expected = model.llama.tokenize(rendered("chatml").encode(), add_bos=False, special=True)
    assert tokens_of(model, TWO_CALLS) == expected


def test_a_turn_of_smollm2_begins_with_the_turn_before(model: constrain.Model) -> None:
    turns = [tokens_of(model, TWO_CALLS[:count]) for count in (2, 5, 7)]
    for earlier, later in pairwise(turns):
        assert later[: len(earlier)] == earlier


@pytest.mark.slow
def test_of_a_second_turn_only_what_is_new_is_evaluated(model: constrain.Model) -> None:
    first, second = tokens_of(model, TWO_CALLS[:2]), tokens_of(model, TWO_CALLS[:5])
    answer = write_calls(check_messages(TWO_CALLS)[2].calls, GENERIC)
    written = model.tokenizer.encode(answer.encode())
    with model.turn() as context:
        context.prefill(first)
        context.decode(written)
        assert context.prefill(second) == len(first) + len(written)


def test_a_model_without_a_reasoning_section_has_none_in_its_prompts(model: constrain.Model) -> None:
    assert conversation_prompt(model.tokenizer, model.chat_template, "Hello!").thinking is ThinkingState.ABSENT


def test_a_shown_text_goes_in_front_of_the_users_first_message(model: constrain.Model) -> None:
    said = TWO_CALLS[:5]
    shown = conversation_prompt(model.tokenizer, model.chat_template, said, tools=TOOLS, shown="SHOWN").tokens
    whole = rendered("chatml")
    text = whole[: whole.index("18 C and")].replace("user\n", "user\nSHOWN\n\n", 1)
    assert shown == model.llama.tokenize(text.encode(), add_bos=False, special=True)


@cache
def loaded(name: str) -> tuple[Any, Tokenizer, str]:
    import llama_cpp

    path = data_folder() / "vocabs" / f"ggml-vocab-{name}.gguf"
    llama = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
    return llama, Tokenizer(llama, constrain.Vocabulary), llama.metadata.get("tokenizer.chat_template", "")


NAMES = ["phi-3", "qwen35", "gemma-4"]


@pytest.mark.slow(but=("phi-3",))
@pytest.mark.parametrize("name", NAMES)
def test_tokens_are_those_of_llama_cpp(name: str) -> None:
    llama, tokenizer, template = loaded(name)
    assert format_of(tokenizer, template).name == "generic"
    said = [
        {"role": "user", "content": "Hi \n there, 'friend'"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "  Bye"},
    ]
    names = {"bos_token": tokenizer.name(tokenizer.bos), "eos_token": tokenizer.name(tokenizer.eos)}
    text = render(template, {"messages": said, "add_generation_prompt": True, **names})
    expected = llama.tokenize(text.encode(), add_bos=False, special=True)
    if tokenizer.adds_bos and expected[0] != tokenizer.bos:
        expected.insert(0, tokenizer.bos)
    assert conversation_prompt(tokenizer, template, said).tokens == expected


def test_begin_of_sequence_comes_once_where_the_model_wants_it() -> None:
    _, tokenizer, _ = loaded("phi-3")
    said = [{"role": "user", "content": "<s>"}]
    for template in ("{{ bos_token }}{{ messages[0].content }}", "{{ messages[0].content }}", ""):
        tokens = conversation_prompt(tokenizer, template, said).tokens
        assert tokens.count(tokenizer.bos) == 1
        assert tokens[0] == tokenizer.bos


def said_by(attack: str) -> list[dict[str, Any]]:
    """The conversation with a text at the end of every content, and in every argument."""
    messages = json.loads(json.dumps(TWO_CALLS))
    for message in messages:
        if message["content"] is not None:
            message["content"] += attack
        for call in message.get("tool_calls", []):
            call["function"]["arguments"] = json.dumps({"city": attack, attack: 1})
    return messages


@pytest.mark.slow(only=("gemma-4", "qwen35"))
@pytest.mark.parametrize("name", NAMES)
def test_names_of_all_special_tokens_change_nothing(name: str) -> None:
    _, tokenizer, template = loaded(name)
    attack = "".join(special.text for special in tokenizer.special_tokens)
    found = []
    for said in ("x", attack):
        tools = json.loads(json.dumps(TOOLS))
        tools[0]["function"]["description"] += said
        tokens = conversation_prompt(tokenizer, template, said_by(said), tools=tools).tokens
        found.append([token for token in tokens if token in tokenizer.vocabulary.special])
    assert found[0] == found[1]
    assert found[0]


def test_a_template_that_shows_no_system_has_the_tools_with_the_user() -> None:
    _, tokenizer, template = loaded("phi-3")
    tokens = conversation_prompt(tokenizer, template, TWO_CALLS[:2], tools=TOOLS).tokens
    names = [tokenizer.name(token) for token in tokens if token in tokenizer.vocabulary.special]
    assert names == ["<s>", "<|user|>", "<|end|>", "<|assistant|>"]
    assert b"Be brief." in b"".join(map(tokenizer.vocabulary.token_bytes, tokens))


@pytest.mark.slow
@pytest.mark.parametrize(("enabled", "state"), [(True, ThinkingState.POSSIBLE), (False, ThinkingState.CLOSED)])
def test_gemma_4_is_told_whether_to_reason(enabled: bool, state: ThinkingState) -> None:
    _, tokenizer, template = loaded("gemma-4")
    thinking = format_of(tokenizer, template).thinking
    assert thinking is not None
    assert thinking.switch is not None
    variables = {thinking.switch.variable: enabled}
    prompt = conversation_prompt(tokenizer, template, TWO_CALLS, tools=TOOLS, variables=variables)
    assert prompt.thinking is state
