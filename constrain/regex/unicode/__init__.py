"""Unicode: properties and case folding as ranges of code points.

``properties`` answers by name; ``parsing`` and ``lark`` ask it. ``data`` holds the tables in data.json, which
``tools/generate_unicode_data.py`` writes; they are loaded when a pattern first needs them.
"""
