"""Decodes by hand: llama-cpp-python evaluates, a matcher masks, NumPy chooses.

python examples/own_loop.py [model.gguf]
"""

from __future__ import annotations

import sys

import llama_cpp
import numpy as np

import constrain

SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Oslo", "Rome"]}, "sunny": {"type": "boolean"}},
    "required": ["city", "sunny"],
    "additionalProperties": False,
}


def main() -> None:
    """Prints the JSON that greedy decoding under the mask writes."""
    with constrain.Model(sys.argv[1] if len(sys.argv) > 1 else None, n_ctx=512) as model:
        llama = model.llama  # the llama_cpp.Llama
        constraint = constrain.compile(SCHEMA, model, whitespace="compact")
        vocabulary = constraint.vocabulary
        matcher = constraint.matcher(max_tokens=40)
        row = constraint.allocate_bitmask()[0]
        written: list[int] = []
        llama.eval(llama.tokenize(b"The weather in Rome today, as JSON: "))
        while True:
            pointer = llama_cpp.llama_get_logits_ith(llama.ctx, -1)  # after the last token
            logits = np.ctypeslib.as_array(pointer, shape=(vocabulary.n_vocab,))
            matcher.fill_bitmask(row)
            allowed = np.unpackbits(row.view(np.uint8), count=vocabulary.n_vocab, bitorder="little").astype(bool)
            token = int(np.where(allowed, logits, -np.inf).argmax())
            assert matcher.accept(token)
            if token in vocabulary.eos:
                break
            written.append(token)
            llama.eval([token])
        print(b"".join(map(vocabulary.token_bytes, written)).decode())


if __name__ == "__main__":
    main()
