"""Vocabularies: which bytes each token id stands for, and which ids are special.

Everything from ``engine`` on takes a ``Vocabulary`` (in ``vocabulary``). It comes from a list of tokens, from a GGUF
file (``gguf``) or from a loaded model with its ``tokenizer``, which turns text into token ids. All of these make a
``table`` first, which is read first.
"""
