"""Scheduling: several answers at once on one model (continuous batching).

``generation`` puts a ``request`` into the queue of the ``scheduler``, which evaluates all answers together and hands
choices that may take long to ``deciding``, each in a thread of its own. Read ``request`` first.
"""
