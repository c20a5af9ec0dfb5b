"""Text completions: ``POST /v1/completions``.

``app`` calls ``endpoint``: read it first. ``request`` reads a body; ``response`` writes finished answers and answers in
progress.
"""
