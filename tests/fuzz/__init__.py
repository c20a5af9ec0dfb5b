"""Coverage-guided fuzzing of all that reads what others wrote; what it found is replayed by the tests.

    python -m tests.fuzz schemas --minutes 20

``judge.py`` says what is expected of every input, ``targets/`` has a module for each kind of input, ``mutation.py``
changes inputs such that they get past their readers, ``__main__.py`` runs it all. See README.md for the builds.
"""
