"""A search for wrong answers: random schemas with texts made for them, and random walks, judged from outside.

``python -m tests.soundness --help``. Files, in reading order: ``schemas`` (random schemas of five drafts), ``values``
(texts for a schema), ``models`` (random Pydantic models), ``search`` (what is compared), ``__main__`` (the command
line). The verdict on a text is that of ``tests.support.judges``.
"""
