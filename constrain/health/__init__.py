"""The health of an installation: what it has, what is wrong, and the command that mends it.

``checks`` (read first) has a row for each part of the installation, which ``constrain doctor`` prints.
"""
