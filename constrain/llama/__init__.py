"""llama.cpp: the model, its tokenizer and prompts, the sampler chain and the decode loop."""

from __future__ import annotations
