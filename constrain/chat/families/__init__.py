"""Families: the forms in which model families write calls and reasoning.

``format`` is what a form is made of, read first. ``forms`` lists the families and finds the one of a chat template.
``prompt``, ``answers`` and ``reading`` work with any ``ToolFormat`` and know no family by name.
"""
