"""Contexts: sequences of tokens, and the tokens of each that are evaluated already.

``context`` is one sequence, for calls that are served one at a time. ``sequences`` are several, for the scheduler;
``batch`` has the form in which llama.cpp takes tokens, ``logits`` that in which it returns logits.
``slots`` records the tokens of each and picks the one that a new prompt takes; ``stored_states`` keeps the state of
overwritten sequences in main memory. Read ``context`` first.
"""
