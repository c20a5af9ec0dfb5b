"""Decoding: one answer, from its first token to its end.

``answer`` decides which tokens an answer takes and when it ends (read first); ``draft`` is the text before an answer,
if there is one. Both use an ``answer_matcher``. ``words`` finds the ends of words, where an answer may cut a string.
``sampler`` is llama.cpp's sampler chain, which chooses one of the allowed tokens; ``sampling`` is the table of its
options, with ``ranges`` for seeds, and ``dry`` keeps samplers that take long to make. Observers watch
masks, choices and tokens; they see the model's own ``distribution`` before each, and may record a ``token_logprob``.
``rejections`` has an answer go back, and write something else in the place of a value that was rejected.
``decode`` is the loop of a single sequence, which ``generation.generate`` runs; ``scheduling`` has the loop of several.
"""
