"""Fields of JSON objects that hold options: each has one reader, for requests to the server and for lines of a batch.

A reader receives the object, and for inner fields their place, so that its errors name it: ``FieldError``. Read
``values`` first (types and ranges, and OpenAI's words for errors), then ``sampling``, ``thinking``, ``logprobs`` and
``votes``.
"""
