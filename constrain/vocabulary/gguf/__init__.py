"""GGUF files: metadata and tokens, without llama.cpp.

``Vocabulary.from_gguf`` and ``llama.memory`` are the callers. Read ``metadata`` first (keys, values and tensor
shapes), then ``tokens`` (the bytes of each token, and the tokens that end a generation). ``files`` has the parts of a
split model and a fingerprint of its weights.
"""
