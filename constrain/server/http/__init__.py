"""HTTP: the basics of any endpoint.

``app`` and every endpoint call this package. Read ``account`` (the record of a request) and ``errors`` (in OpenAI's
form) first. ``protocol``, ``listening`` and ``connection`` handle sockets and clients that leave; ``events`` writes
server-sent events; ``auth``, ``hosts`` and ``cors`` decide who may call; ``pace`` estimates how long a queue takes.
"""
