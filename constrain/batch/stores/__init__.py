"""Answers in a store that cannot append, such as S3: numbered parts, of which each appears whole.

Read ``locks`` first (one command writes at a time), then ``parts`` (answers and errors, uploaded piece by piece).
``batch.files`` calls them. Nothing here imports pyarrow: a ``StoredFile`` has its store.
"""
