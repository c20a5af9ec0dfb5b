"""Vocabularies: the bytes of each token id, and the ids that are special.

Read ``table`` first: a list of tokens, a GGUF file (``gguf``) and a loaded model each become a token table, from which
``vocabulary`` makes the ``Vocabulary``. ``marked`` adds ids for the sets of tokens in a grammar. ``tokenizer`` turns
text into the token ids of a loaded model. The callers are ``engine`` and the packages above it.
"""
