"""The endpoint on a cluster: ``constrain serve`` as an application of Ray Serve.

Users call ``serve_app`` in ``app``: read it first. A request comes to the process of a ``front``, which has no model;
it sends the request to a ``replica``, which has the whole server, and passes on its response. When a replica dies, the
front asks another one, or ends a stream that has begun with an error. ``measurements`` of replicas go to Ray.
"""
