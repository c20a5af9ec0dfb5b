"""Internationalized host names and mail addresses (IDNA 2008, RFC 6531).

``formats.expressions`` and ``formats.definitions`` are the callers. Read ``tables`` first (what IDNA says of each code
point), then ``expressions`` (what is written) and ``definitions`` (all that counts, for negation).
"""
