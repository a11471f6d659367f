#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""assay's judge as a tool of the Model Context Protocol: JSON-RPC 2.0 on standard input and output, a message a line.

mcp_server.py [--call-seconds S ...]    limits as of `assay judge-callable`"""
import argparse
import json
import sys

from assay._callable import command, task
from assay._callable.judges import ERROR, Judges

VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
TOOL = {
    "name": "judge_callable",
    "description": "Runs a decode-attention function of tensors on inputs made for it and says whether every output is right, what failed, and why.",
    "inputSchema": {"type": "object", "required": ["target"], "properties": {
        "target": {"type": "string", "description": "FILE.py:NAME or MODULE:NAME"},
        "shape": {"type": "string", "description": "such as batch=8,heads=32/8,head_dim=128,keys=1024,page_size=16"},
        "adapter": {"type": "string", "description": "FILE.py:NAME of what makes the function from the target"},
        "like": {"type": "string", "description": "the arithmetic that is claimed"},
        "assume": {"type": "array", "items": {"type": "string"}, "description": "what the interface excludes"},
        "explain": {"type": "boolean", "description": "look for the cause of a finding"},
    }},
}  # fmt: skip


class Refused(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def call_tool(params, judges):
    if params.get("name") != TOOL["name"]:
        raise Refused(-32602, f"no tool {params.get('name')!r}, expected {TOOL['name']!r}")
    try:
        said = judges.submit(task.arguments(params.get("arguments") or {})).result()
    except task.FieldError as error:
        said = {"verdict": ERROR, "cause": str(error)}
    return {"content": [{"type": "text", "text": json.dumps(said)}], "isError": said["verdict"] == ERROR}


def result(method, params, judges):
    if method == "initialize":
        asked = params.get("protocolVersion")
        return {"protocolVersion": asked if asked in VERSIONS else VERSIONS[0], "capabilities": {"tools": {}}, "serverInfo": {"name": "assay", "version": "0"}}
    if method == "tools/call":
        return call_tool(params, judges)
    known = {"ping": {}, "tools/list": {"tools": [TOOL]}}
    if method not in known:
        raise Refused(-32601, f"no method {method!r}")
    return known[method]


def answer(line, judges):
    """The reply to a line; None where none is wanted."""
    number = None
    try:
        request = task.parsed(line)
        number = request.get("id")
        if "id" not in request:
            return None
        params = request.get("params") or {}
        if not isinstance(params, dict) or not isinstance(params.get("arguments") or {}, dict) or not isinstance(request.get("method"), str):
            raise Refused(-32600, "no request: expected a method, and objects as params and arguments")
        return {"jsonrpc": "2.0", "id": number, "result": result(request["method"], params, judges)}
    except task.FieldError as error:
        code, text = -32700, str(error)
    except Refused as error:
        code, text = error.code, str(error)
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_limits(parser)
    judges = Judges(1, command.limits_of(parser.parse_args()))
    for line in sys.stdin.buffer:
        if line.strip() and (reply := answer(line, judges)) is not None:
            print(json.dumps(reply), flush=True)
    judges.close()


if __name__ == "__main__":
    main()
