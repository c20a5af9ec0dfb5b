"""Vocabularies: the bytes of each token id, and the ids that are special.

Read ``table`` first: a list of tokens, a GGUF file (``gguf``), a loaded model and a tokenizer of another library
(``libraries``) each become a token table, from which ``vocabulary`` makes the ``Vocabulary``. All of them use
``spelling`` (how tokens are spelled) and ``ends`` (the names of tokens that end a generation). ``tokenizer`` turns
text into the token ids of a loaded model, ``exact`` bytes into ids that spell exactly these bytes. The callers are
``engine`` and the packages above it.
"""
