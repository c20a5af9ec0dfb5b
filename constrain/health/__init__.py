"""The health of an installation: what it has, what is wrong, and the command that mends it.

``checks`` (read first) has a row for each part of the installation, which ``constrain doctor`` prints. ``canary`` has a
model answer under a mask that it would never fill by itself; the server does so with each model that it loads.
"""
