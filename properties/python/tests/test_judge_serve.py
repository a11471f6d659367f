# SPDX-License-Identifier: Apache-2.0
"""Candidates over HTTP: every verdict is right, whatever the others do; what is no candidate is refused by its field."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

import pytest

import callables
from waiting import FAR, running, until

HERE = pathlib.Path(__file__).parent
SHAPE = "batch=2,heads=2/1,keys=40,head_dim=16"


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=FAR)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(FAR)
        self.sock.connect(self.path)


def exchange(connection, method, path, body=None, **headers):
    with contextlib.closing(connection):
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


class Server:
    def __init__(self, *words, where=("--socket", "s"), **variables):
        self.command = [sys.executable, "-B", "-m", "assay", "serve", *where, "--gigabytes", "1", *words]
        self.variables = {**os.environ, **variables}
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True, env=self.variables)
        self.where = re.match("assay serve: listens on (.*)", self.process.stderr.readline())[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def status(self):
        return exchange(Connection("s"), "GET", "/status")[1]

    def post(self, **given):
        return exchange(Connection("s"), "POST", "/judge", json.dumps(given))

    def judge(self, name, **more):
        return self.post(target=f"{HERE}/batch_candidates.py:{name}", shape=SHAPE, **more)

    def resident(self):
        return int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_thirty_candidates_of_four_clients_get_their_verdicts_and_leave_no_memory():
    names = ["runs_forever", "plain", "loses_the_last_key", "ends_by_a_signal", "raises_html", "loses_the_last_key"] * 5
    with Server("--jobs", "2", "--call-seconds", "3") as server, concurrent.futures.ThreadPoolExecutor(4) as clients:
        assert server.judge("plain", id="first")[1]["verdict"] == "pass"
        before = server.resident()
        answers = list(clients.map(lambda at: server.judge(names[at], id=at), range(30)))
        for at, (code, answer) in enumerate(answers):
            assert (code, answer["id"]) == (200, at) and answer["target"].endswith(":" + names[at])
            assert answer["verdict"] == ("pass" if names[at] == "plain" else "finding"), answer
        assert server.resident() - before < 50 << 20
        said = server.status()
        assert (said["queued"], said["running"], said["done"], said["jobs"], said["ending"]) == (0, 0, 31, 2, False) and said["version"]


def test_a_killed_server_leaves_nothing_running_starts_again_and_clients_send_again(tmp_path):
    for path in (HERE / "batch_candidates.py", pathlib.Path(callables.__file__)):
        (tmp_path / path.name).write_text(path.read_text())
    with Server("--call-seconds", "7654.25") as server:
        lost = []

        def sends():
            try:
                server.post(target=f"{tmp_path}/batch_candidates.py:runs_forever", shape=SHAPE)
            except (OSError, http.client.HTTPException) as error:
                lost.append(error)

        client = threading.Thread(target=sends)
        client.start()
        until(lambda: server.status()["running"] == 1)
        server.process.kill()
        server.process.wait()
        client.join()
        until(lambda: not running(str(tmp_path)) and not running('"call_seconds": 7654.25'))
        assert lost and stat.S_ISSOCK(os.lstat("s").st_mode)
        server.start()
        assert server.judge("loses_the_last_key")[1]["verdict"] == "finding" and server.status()["done"] == 1
        assert stat.S_IMODE(os.lstat("s").st_mode) == 0o600


def test_a_server_that_ends_finishes_what_runs_and_takes_nothing_new():
    with Server("--call-seconds", "5") as server, concurrent.futures.ThreadPoolExecutor(2) as clients:
        runs = clients.submit(server.judge, "runs_forever")
        until(lambda: server.status()["running"] == 1)
        waits = clients.submit(server.judge, "plain")
        until(lambda: server.status()["queued"] == 1)
        server.process.send_signal(signal.SIGTERM)
        code, answer = waits.result()
        assert code == 503 and "the server ends; send it again" in answer["error"]
        assert server.judge("plain")[0] == 503
        code, answer = runs.result()
        assert (code, answer["verdict"], server.process.wait()) == (200, "finding", 0) and not os.path.exists("s")


def test_the_queue_has_a_bound_and_forgets_clients_that_are_gone():
    with Server("--queue", "1", "--call-seconds", str(2 * FAR)) as server:
        forever = json.dumps({"target": f"{HERE}/batch_candidates.py:runs_forever", "shape": SHAPE})
        runs, gone = Connection("s"), Connection("s")
        runs.request("POST", "/judge", forever)
        until(lambda: server.status()["running"] == 1)
        gone.request("POST", "/judge", forever)
        until(lambda: server.status()["queued"] == 1)
        code, answer = server.judge("plain")
        assert code == 503 and "1 candidates wait already" in answer["error"]
        gone.close()
        until(lambda: server.status()["queued"] == 0)
        assert (server.status()["running"], server.status()["done"]) == (1, 0)
        runs.close()


@pytest.mark.parametrize("method, path, body, headers, code, said, field", [
    ("POST", "/judge", b"{}", {}, 400, "target: missing", "target"), ("POST", "/judge", b"no", {}, 400, "no JSON", ""),
    ("POST", "/judge", b'{"target": "f.py:g", "shape": "batch=0"}', {}, 400, "shape: batch is 0, expected 1", "shape"),
    ("POST", "/judge", b'{"target": "f.py:g", "seeds": 3}', {}, 400, "seeds: no field", "seeds"),
    ("POST", "/judge", b'{"target": "f.py:g"}', {}, 400, "f.py: no such file", "target"),
    ("POST", "/judge", None, {"Content-Length": str((1 << 20) + 1)}, 413, "expected at most 1048576", None),
    ("POST", "/judge", None, {"Content-Length": "-1"}, 411, "Content-Length", None),
    ("POST", "/judge", iter([b"{}"]), {}, 411, "other lengths are not taken", None),
    ("POST", "/other", b"{}", {}, 404, "expected GET /status or POST /judge", None), ("GET", "/judge", None, {}, 404, "no such path", None),
    ("DELETE", "/judge", None, {}, 501, "Unsupported method", None), ("GET", "/" + "a" * 70000, None, {}, 414, "URI", None),
])  # fmt: skip
def test_a_request_that_does_not_fit_is_refused_by_its_field(one_server, method, path, body, headers, code, said, field):
    answered, answer = exchange(Connection(one_server), method, path, body, **headers)
    assert answered == code and answer["error"].startswith("assay: ") and re.search(said, answer["error"], re.IGNORECASE)
    assert answer.get("field") == field


def test_a_client_that_sends_its_body_late_reads_why_it_is_refused(one_server):
    connection = Connection(one_server)
    with contextlib.closing(connection):
        connection.connect()
        connection.sock.sendall(b"POST /other HTTP/1.0\r\nContent-Length: 2\r\n\r\n")
        answer = b"".join(iter(lambda: connection.sock.recv(4096), b""))
        time.sleep(0.2)  # a server that closes has closed by now
        connection.sock.sendall(b"{}")
    assert b" 404 " in answer and b"POST /judge" in answer


def test_what_is_no_http_holds_up_nobody(one_server):
    open_ones = [Connection(one_server) for _ in range(40)]
    for connection, text in zip(open_ones, (b"", b"\0\xff\r\n\r\n", b"POST /judge HTTP/1.1\r\nContent-Length: 9\r\n\r\n{") * 14):
        connection.connect()
        connection.sock.sendall(text)
    assert exchange(Connection(one_server), "GET", "/status")[0] == 200
    for connection in open_ones:
        connection.close()


@pytest.fixture(scope="module")
def one_server(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("serve") / "s")
    with Server(where=("--socket", path)):
        yield path


def test_a_candidate_has_no_descriptor_of_the_server_and_is_not_answered():
    with Server("--jobs", "2", ASSAY_TEST_SOCKET=os.path.abspath("s")) as server:
        held = [Connection("s") for _ in range(5)]
        for connection in held:
            connection.connect()
        server.judge("loses_the_last_key")
        cause = server.judge("lists_its_descriptors")[1]["stages"][0]["cause"]
        there = re.findall(r"\(([0-9]+), '([^']*)'\)", cause)
        assert there[:1] == [("0", "/dev/null")] and [fd for fd, what in there if what == "socket"] == ["3"], cause
        assert {what for fd, what in there if int(fd) > 3} == {"/memfd"} and len(there) <= 6, cause  # the fourth, and Python's copy of it
        answer = server.judge("asks_the_server")[1]
        if answer["isolation"] == "namespaces":
            assert "it said b''" in answer["stages"][0]["cause"] or "Error" in answer["stages"][0]["cause"]
            assert "queued" not in answer["stages"][0]["cause"]
        for connection in held:
            connection.close()


def test_pages_of_a_browser_are_refused_on_the_network():
    with Server(where=("--port", "0")) as server:
        port = int(server.where.rpartition(":")[2])
        for headers, code in (({}, 200), ({"Host": f"localhost:{port}"}, 200), ({"Host": "evil.example"}, 403), ({"Origin": "null"}, 403)):
            assert exchange(http.client.HTTPConnection("127.0.0.1", port, timeout=FAR), "GET", "/status", **headers)[0] == code
        large = {"Content-Length": str(3 << 20)}
        assert exchange(http.client.HTTPConnection("127.0.0.1", port, timeout=FAR), "POST", "/judge", bytes(3 << 20), **large)[0] == 413
        taken = subprocess.run([sys.executable, "-m", "assay", "serve", "--port", str(port)], text=True, capture_output=True)
        assert taken.returncode == 2 and "in use" in taken.stderr


def test_a_path_that_is_taken_is_said():
    pathlib.Path("s").write_text("a note")
    ran = subprocess.run([sys.executable, "-m", "assay", "serve", "--socket", "s"], text=True, capture_output=True)
    assert ran.returncode == 2 and "s: not a socket" in ran.stderr and pathlib.Path("s").read_text() == "a note"
    os.unlink("s")
    with Server() as server:
        again = subprocess.run(server.command, text=True, capture_output=True)
        assert again.returncode == 2 and "a server listens there" in again.stderr and server.status()["jobs"] == 1
