"""Values: which values exist, and how many.

``compiler`` calls these between expanding goals and emitting rules. ``productivity`` marks goals that have a value at
all; ``doubles`` keeps to numbers that read alike as decimals and as IEEE doubles; ``unique_items`` with ``counting``
sees to it that items never run out of different values; ``contradictions`` finds the words for a schema without one.
"""
