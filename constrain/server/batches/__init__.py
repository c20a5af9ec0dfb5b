"""``/v1/files`` and ``/v1/batches``: files of requests, answered in the background and kept across restarts.

Read ``folder`` first (where everything is kept), then ``files`` (files of clients), ``lines`` (the requests in a file),
``record`` (a batch and its states), ``journal`` (its answers on disk), ``asking`` (one request to an endpoint),
``running`` (all batches, line by line), ``uploads`` and ``endpoint`` (the HTTP side).
"""
