"""GGUF files: metadata and tokens, never the weights, without llama.cpp.

``Vocabulary.from_gguf`` and ``llama.memory`` are the callers. Read ``metadata`` first (keys, values and tensor
shapes), then ``tokens`` (their bytes, and which of them end a generation).
"""
