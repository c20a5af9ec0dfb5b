"""An MCP server of the protocol of 2025, by hand: two pages of tools, errors of all kinds, and a list that changes.

python scripted.py            speaks through standard input and output
python scripted.py LIST       lists the tools in a JSON file instead of its own
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
PAGES = [
    [{"name": "shout", "description": "In capitals.", "inputSchema": WORD}, {"name": "fail", "inputSchema": NOTHING}],
    [
        {"name": "break/off", "title": "Ends the server.", "inputSchema": NOTHING},
        {"name": "hang", "inputSchema": NOTHING},
        {"name": "grow", "inputSchema": NOTHING},
        {"name": "refuse", "inputSchema": NOTHING},
        {"name": "cancelled", "description": "Which calls were cancelled.", "inputSchema": NOTHING},
        {"name": "variable", "description": "The environment variable.", "inputSchema": WORD},
    ],
]
CANCELLED: list[int] = []


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(*texts: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": each} for each in texts], **more}


def call(number: int, name: str, arguments: dict[str, Any]) -> None:
    if name == "shout":
        send(id=number, result=text(arguments["word"].upper()))
    elif name == "fail":
        send(id=number, result=text("out of paper", isError=True))
    elif name == "refuse":
        send(id=number, error={"code": -32602, "message": "not today"})
    elif name == "cancelled":
        send(id=number, result=text(json.dumps(CANCELLED)))
    elif name == "variable":
        send(id=number, result=text(os.environ.get(arguments["word"], "")))
    elif name == "break/off":
        sys.exit(0)
    elif name == "grow":
        PAGES[1].append({"name": f"grown_{len(PAGES[1])}", "inputSchema": NOTHING})
        send(method="notifications/tools/list_changed")
        send(id=number, result=text("grown"))


def answer(message: dict[str, Any]) -> None:
    match message.get("method"):
        case "initialize":
            about = {"name": "scripted", "version": "1"}
            offered = {"tools": {"listChanged": True}}
            told = "Shout with care."
            version = message["params"]["protocolVersion"]
            result = {"protocolVersion": version, "capabilities": offered, "serverInfo": about, "instructions": told}
            send(id=message["id"], result=result)
        case "tools/list":
            page = int((message.get("params") or {}).get("cursor") or 0)
            more = {"nextCursor": str(page + 1)} if page + 1 < len(PAGES) else {}
            send(id=message["id"], result={"tools": PAGES[page], **more})
        case "tools/call":
            call(message["id"], message["params"]["name"], message["params"].get("arguments") or {})
        case "notifications/cancelled":
            CANCELLED.append(message["params"]["requestId"])
        case _ if "id" in message:
            send(id=message["id"], error={"code": -32601, "message": "unknown method"})


def main() -> None:
    if len(sys.argv) > 1:
        PAGES[:] = [json.loads(Path(sys.argv[1]).read_text())]
    for line in sys.stdin:
        answer(json.loads(line))


if __name__ == "__main__":
    main()
