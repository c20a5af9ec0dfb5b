"""Internationalized host names and mail addresses (IDNA 2008, RFC 6531).

``formats.expressions`` and ``formats.definitions`` are the callers. Read ``tables`` first (properties
of code points), then ``expressions`` (texts that are written) and ``definitions`` (texts that count, for negation).
"""
