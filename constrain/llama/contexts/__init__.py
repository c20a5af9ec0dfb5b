"""Contexts: sequences of tokens, and what of them is evaluated already.

``context`` is one sequence, for the calls that are served one at a time. ``sequences`` are several, for the scheduler;
``slots`` knows which tokens each has and which of them a new prompt should take; ``aside`` keeps the state of those
that had to give up their place. Read ``context`` first.
"""
