"""Observers: what is told about an answer besides its value and its text.

An observer sees the masks, choices and tokens of one answer, and never changes them. Read ``observer`` first,
whose table has one line for each; the core of an answer (``generation.running``, ``llama.decoding``) knows no other
module of this package. ``generation.completion`` has the names under which an answer has their reports.

``choices`` records what was chosen among what, for other observers; ``logprobs``, ``confidence`` and ``trace`` report
probabilities, ``captures`` and ``quotes`` places in the text, ``certificate`` a proof. docs/explanation/observers.md
shows how to write another one.
"""
