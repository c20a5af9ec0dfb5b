"""Batches: a file of prompts in, a file of answers out, each on this machine or in a store such as S3.

The caller is ``constrain batch`` (``cli.batch``). Read ``lines`` first (one line and its task), then ``answering`` (a
model answers a task) and ``records`` (an answer or error as JSON). ``inputs`` are JSON Lines and tables: ``locations``
says where files are, ``prompts`` which columns have the prompts, ``scanning`` what one reading finds, and ``tables``
reads and writes Parquet and CSV. ``files`` has the answers, the lines already answered, and the settings the answers
depend on (``notes``): on this machine (``disk``) or in ``stores``. ``run`` answers each line once even if the batch is
interrupted and started again, and ``finishing`` makes the output of the lines.
"""
