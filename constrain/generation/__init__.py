"""Generation: from a prompt and a schema to a value.

``generate``, ``complete`` and ``stream`` are public, and in ``generate``; ``asynchronous`` has their twins, ``batch``
many prompts at once, ``tool_loop`` ``run_tools``. All of them read ``options`` and have ``planning`` make a ``job``
(read these first). ``completion`` is what they return; ``logprobs`` writes it as JSON. The text that shows a schema to
the model is ``language.hint``, asked for by ``AnswerSettings.shown``. An answer stays within ``max_tokens`` by
``llama.decoding.answer`` and the kernel's matcher.
"""
