"""Generation: from a prompt and a schema to a value.

The public functions ``generate``, ``complete`` and ``stream`` are in ``generate``; their asynchronous twins in
``asynchronous``, many prompts at once in ``batch``, and ``run_tools`` in ``tool_loop``. All of them read their keywords
with ``options`` and make a ``plan`` with ``planning``; an answer in progress is ``running``: read these four first.
``exclusions`` says which options exclude or need each other. ``introducing`` shows the model a tool that it calls, if
the prompt had only its name. ``observers`` report on answers: log-probabilities, captures, certificates and more.
``completion`` has the results. ``reasoning`` says whether an answer begins with reasoning, ``quoting`` restores quotes
in its value, ``voting`` makes one answer of several, and ``choosing`` has the probabilities of given options.
``checking`` has single fields judged while they are written, and written again.
``partial`` turns streams of text into streams of fields, and ``logprobs`` writes log-probabilities as JSON.
``language.hint`` makes the text that shows the schema to the model, for ``AnswerSettings.describe_schema``.
``llama.decoding.answer`` and the kernel's matcher keep an answer within ``max_tokens``.
"""
