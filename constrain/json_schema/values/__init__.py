"""Values: existence and number of the values of goals.

``compiler`` calls this package between expanding goals and emitting rules. ``productivity`` marks goals that have a
value; ``doubles`` narrows numbers to those that are valid as decimals and as doubles; ``unique_items``, with
``counting``, keeps items from running out of different values; ``contradictions`` explains a schema without values.
"""
