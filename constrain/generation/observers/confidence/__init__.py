"""Confidence: how likely the parts of an answer were, what the constraint left out, and what else was likely.

``fields``, which is read first, observes an answer with ``confidence=True``: it finds the values of a JSON text and the
tokens that spell each. ``alternatives`` finds the other values that a part might have had, with their probabilities.
"""
