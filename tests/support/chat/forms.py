"""Forms of calls, one for each way in which forms differ; all marks are plain text unless a test names tokens."""

from __future__ import annotations

from constrain.chat.families.format import ArgumentStyle, Section, Thinking, ToolFormat

TAGS = ToolFormat(
    "tags",
    call='<tool_call>\n{"name": "$name", "arguments": $arguments}\n</tool_call>',
    custom_call='<tool_call>\n{"name": "$name", "input": $json_input}\n</tool_call>',
    between="\n",
    thinking=Thinking("<think>\n", "</think>"),
)
"""A pair of tags around each call, after text."""

OBJECT = ToolFormat(
    "object",
    call='{"name": "$name", "parameters": $arguments}',
    custom_call='{"name": "$name", "input": $json_input}',
    text_before=False,
    parallel=False,
)
"""One JSON object, which is the whole answer."""

LIST = ToolFormat(
    "list",
    call='{"name": "$name", "arguments": $arguments, "id": "$id"}',
    custom_call='{"name": "$name", "input": $json_input, "id": "$id"}',
    opening="[TOOL_CALLS][",
    between=", ",
    closing="]",
    id_pattern="[a-z0-9]{3}",
)
"""A list, with ids behind the values."""

FENCES = ToolFormat(
    "fences",
    call="<call>$id:$name\n```json\n$arguments\n```</call>",
    custom_call="<call>$id:$name\n```\n$input\n```</call>",
    opening="<calls>",
    closing="</calls>",
    id_pattern="[a-z0-9]{3}",
)
"""Each value fenced, with ids in front; the input of custom tools as it is."""

ELEMENTS = ToolFormat(
    "elements",
    call="<tool_call>\n<function=$name>\n$arguments</function>\n</tool_call>",
    custom_call="<tool_call>\n<custom=$name>\n$input\n</custom>\n</tool_call>",
    between="\n",
    style=ArgumentStyle.XML,
    thinking=Thinking("<think>", "</think>"),
)
"""An element for each argument."""

PYTHON = ToolFormat(
    "python",
    call="$name($arguments)",
    custom_call="$name($json_input)",
    opening="[",
    between=", ",
    closing="]",
    style=ArgumentStyle.PYTHON,
    text_before=False,
)
"""A list of calls as Python has them."""

NAMES = ToolFormat("names", call="$name$arguments", custom_call="$name: $json_input", opening=">>>", between=">>>")
"""Values directly behind names."""

CHANNELS = ToolFormat(
    "channels",
    call="<|channel|>commentary to=$name<|message|>$arguments",
    custom_call="<|channel|>commentary to=$name<|message|>$json_input",
    parallel=False,
    thinking=Thinking("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
    content=Section("<|channel|>final<|message|>", ""),
    preamble=Section("<|channel|>commentary<|message|>", "<|end|><|start|>assistant"),
)
"""All that an answer is made of stands in sections that begin alike."""

RECIPIENTS = ToolFormat(
    "recipients",
    call="$name\n$arguments",
    custom_call="$name\n$json_input",
    between=">>>",
    content=Section("all\n", ""),
    preamble=Section("all\n", ">>>"),
)
"""Content stands where calls do, under a name of its own."""

FORMS = (TAGS, OBJECT, LIST, FENCES, ELEMENTS, PYTHON, NAMES, CHANNELS, RECIPIENTS)
