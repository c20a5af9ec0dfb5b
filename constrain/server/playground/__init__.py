"""The playground: a page at ``/`` that shows an answer token by token, and the JSON endpoint behind it.

``app`` mounts the routes of ``endpoint``. Read ``objects`` first: it has the events of a run as JSON, which ``constrain
generate --trace`` writes, too, and imports nothing of the server.

- ``language``: the schema or grammar of a request, in one of five notations
- ``request``: bodies of requests; ``stream``: the events of an answer that is being written
- ``inspecting``: checks and explanations, in the processes of the sandbox; ``budget``: how an answer ends within one
- ``exporting``: files of the page, and a finished run as one file; ``page``: their routes
"""
