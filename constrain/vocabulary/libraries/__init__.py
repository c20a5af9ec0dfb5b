"""Vocabularies from the tokenizers of other libraries, checked against them.

``Vocabulary.from_tokenizers``, ``from_transformers``, ``from_sentencepiece`` and ``from_tiktoken`` are the callers.
No library is imported here: the object that the caller hands in brings its own. Read ``loading`` first, with what all
four share. ``hugging_face`` reads tokenizers of tokenizers and transformers; ``decoders`` finds the bytes of their
tokens, ``encoders`` the parts that would change a text. ``sentence_pieces`` reads SentencePiece processors,
``ranks`` reads encodings of tiktoken. ``checks`` compares all tokens, and sample texts, with the library.
"""
