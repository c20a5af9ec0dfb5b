"""Batches: a file with one prompt per line in, a file with one answer per line out.

The caller is ``constrain batch`` (``cli.batch``). Read ``lines`` first (one line and its task), then ``answering`` (a
model answers a task) and ``records`` (an answer or error as JSON), then ``files`` (input, answers, lines already
answered, and the settings the answers depend on), then ``run``, which answers each line once even if the batch is
interrupted and started again.
"""
