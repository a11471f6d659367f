# SPDX-License-Identifier: Apache-2.0
"""The judge as a tool of the Model Context Protocol, asked by a client of the test's own."""
import json
import pathlib
import subprocess
import sys

import callables
from conftest import HERE

FUNCTIONS = pathlib.Path(callables.__file__)
SHAPE = "batch=2,heads=2/1,keys=40,head_dim=16"


def said(*lines):
    """What the server answers to these lines, by id."""
    text = b"".join((line if isinstance(line, bytes) else json.dumps({"jsonrpc": "2.0", **line}).encode()) + b"\n" for line in lines)
    ran = subprocess.run([sys.executable, "-B", str(HERE.parent / "adapters/mcp_server.py"), "--call-seconds", "20"], input=text, capture_output=True)
    assert ran.returncode == 0, ran.stderr
    return {reply["id"]: reply for reply in map(json.loads, ran.stdout.splitlines())}


def call(number, **arguments):
    return {"id": number, "method": "tools/call", "params": {"name": "judge_callable", "arguments": arguments}}


def test_a_client_begins_lists_and_gets_verdicts():
    replies = said(
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}},
        {"method": "notifications/initialized"}, {"id": 2, "method": "tools/list"}, {"id": 3, "method": "ping"},
        call("right", target=f"{FUNCTIONS}:plain", shape=SHAPE), call("wrong", target=f"{FUNCTIONS}:loses_the_last_key", shape=SHAPE),
    )  # fmt: skip
    assert set(replies) == {1, 2, 3, "right", "wrong"} and replies[1]["result"]["protocolVersion"] == "2025-03-26" and replies[3]["result"] == {}
    assert [tool["name"] for tool in replies[2]["result"]["tools"]] == ["judge_callable"]
    verdicts = {name: json.loads(replies[name]["result"]["content"][0]["text"]) for name in ("right", "wrong")}
    assert verdicts["right"]["verdict"] == "pass" and verdicts["wrong"]["verdict"] == "finding"
    assert not replies["wrong"]["result"]["isError"] and "did not count" in verdicts["wrong"]["stages"][-1]["cause"]


def test_what_does_not_fit_is_refused_by_name_and_the_next_is_answered():
    replies = said(
        b"no JSON", b"[]", {"id": 1, "method": "resources/list"}, {"id": 2, "method": "tools/call", "params": {"name": "shell"}}, {"id": 3, "method": 4},
        {"id": 4, "method": "tools/call", "params": []}, {"id": 5, "method": "tools/call", "params": [1]}, call(6, shape=SHAPE), call(7, target="f:g", seeds=1),
        call(8, target=f"{FUNCTIONS}:none", shape=SHAPE), {"id": 9, "method": "initialize", "params": {"protocolVersion": "1"}},
    )  # fmt: skip
    errors = {number: reply["error"]["message"] for number, reply in replies.items() if "error" in reply}
    assert errors[1] == "no method 'resources/list'" and errors[2] == "no tool 'shell', expected 'judge_callable'" and None in errors
    assert errors[3] == errors[5] == "no request: expected a method, and objects as params and arguments" and "no tool None" in errors[4]
    causes = {number: json.loads(replies[number]["result"]["content"][0]["text"])["cause"] for number in (6, 7, 8)}
    assert causes[6] == "assay: target: missing" and causes[7].startswith("assay: seeds: no field") and "has no none" in causes[8]
    assert all(replies[number]["result"]["isError"] for number in causes) and replies[9]["result"]["protocolVersion"] == "2025-06-18"
