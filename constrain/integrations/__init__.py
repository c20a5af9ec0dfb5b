"""This library in the programs and decode loops of others.

``transformers`` has the logits processor for batches, beams and several answers in ``generate``; users import it from
there. It follows each row of the batch with ``rows``; ``engine.logits`` has the processor for one sequence. ``mlx`` has
the processor for the loops of mlx-lm. torch, transformers and mlx are imported where a caller hands in a tensor or an
array. ``llm`` is the plugin for the program ``llm``, which finds it by an entry point.
"""
