"""``constrain chat``: a conversation at the terminal.

``command`` has the options and the loop of questions: read it first. ``talk`` holds the conversation and has the
model answer; ``slash`` runs commands such as ``/schema``; ``servers`` holds MCP servers; ``entry`` reads what the
user types, ``stop`` notes Ctrl-C, and ``screen`` shows answers.
"""
