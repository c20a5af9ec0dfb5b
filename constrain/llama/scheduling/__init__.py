"""Scheduling: several answers at once on one model (continuous batching).

``generation`` puts a ``request`` into the queue of the ``scheduler``. The scheduler evaluates answers together, as
``grouping`` finds it cheapest, and hands slow choices to ``deciding``, each in a thread of its own. Read ``request``
first.
"""
