# SPDX-License-Identifier: Apache-2.0
"""POST /judge, GET /status: candidates in, verdicts out, over a Unix socket or on 127.0.0.1."""
import concurrent.futures
import contextlib
import errno
import http
import http.server
import json
import os
import re
import select
import socket
import socketserver
import stat
import threading

from . import peers, task
from .judges import ERROR
from .work import NotTaken

_LOOK = 1.0  #: seconds between two looks whether a client that waits is still there
_MOST_LEFT = 16 << 20  #: bytes of a refused request that are still read
_SPARE = 64  #: connections beyond those that candidates need
_BUSY = b'HTTP/1.0 503 Busy\r\nContent-Type: application/json\r\n\r\n{"error": "assay: too many connections"}\n'


class _Refused(Exception):
    def __init__(self, status, text, field=None):
        super().__init__(text)
        self.status, self.field = status, field


class _Handler(http.server.BaseHTTPRequestHandler):
    timeout = 10  #: seconds of silence while a request is read
    server_version, sys_version = "assay", ""
    refused = False

    def do_GET(self):
        self._answer_to("/status", lambda: {**self.server.work.status(), "version": self.server.version})

    def do_POST(self):
        self._answer_to("/judge", self._judged)

    def _answer_to(self, path, made):
        try:
            if self.server.on_network and (refusal := peers.page_says(self.headers)):
                raise _Refused(403, refusal)
            if self.path != path:
                raise _Refused(404, "no such path, expected GET /status or POST /judge")
            answer = made()
        except _Refused as refused:
            self._send(refused.status, {"error": f"assay: {refused}".replace("assay: assay: ", "assay: "),
                                        **({} if refused.field is None else {"field": refused.field})})  # fmt: skip
        else:
            if answer is not None:
                self._send(500 if answer.get("verdict") == ERROR else 200, answer)

    def finish(self):
        """Takes what the client of a refused request still sends: closing with bytes left resets the connection, and the answer is lost."""
        super().finish()
        with contextlib.suppress(OSError):
            if self.refused:
                self.connection.shutdown(socket.SHUT_WR)
                for _ in range(_MOST_LEFT >> 16):
                    if not self.connection.recv(1 << 16):
                        break

    def _body(self):
        said = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,18}", said) or "Transfer-Encoding" in self.headers:
            raise _Refused(411, "Content-Length is missing or no number, and other lengths are not taken")
        if int(said) > task.MOST_BYTES:
            raise _Refused(413, f"a body of {said} bytes, expected at most {task.MOST_BYTES}")
        body = self.rfile.read(int(said))
        if len(body) < int(said):
            raise _Refused(400, f"a body of {len(body)} bytes, Content-Length says {said}")
        return body

    def _judged(self):
        """The verdict's JSON; None where the client is gone."""
        try:
            given = task.parsed(self._body())
            future = self.server.work.submit(task.arguments(given))
        except task.FieldError as error:
            raise _Refused(400, str(error), error.field) from None
        except NotTaken as error:
            raise _Refused(503, f"{error}; send it again later") from None
        said = self._waited(future)
        if said is not None and said.get("whose") == "line":
            raise _Refused(400, said["cause"], "target")
        return said if said is None or "id" not in given else {"id": given["id"], **said}

    def _waited(self, future):
        while True:
            try:
                said = future.result(_LOOK)
            except concurrent.futures.CancelledError:
                raise _Refused(503, "the server ends; send it again later") from None
            except concurrent.futures.TimeoutError:
                if self._gone() and future.cancel():  # what runs is not stopped
                    return None
            else:
                self.server.work.forget(future)
                return said

    def _gone(self):
        looked = select.poll()
        looked.register(self.connection, select.POLLRDHUP)
        return bool(looked.poll(0))

    def _send(self, status, answer):
        self.refused = status != http.HTTPStatus.OK
        text = json.dumps(answer, allow_nan=False).encode() + b"\n"
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        except OSError:  # the client is gone
            self.close_connection = True

    def send_error(self, code, message=None, explain=None):
        """Of requests that are no HTTP, or have another method."""
        self._send(code, {"error": f"assay: {message or http.HTTPStatus(code).phrase}"[:300]})

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """`where`: a port of 127.0.0.1, or the path of a Unix socket. A thread for each connection, within a bound."""

    daemon_threads = False  # the end waits for answers that are being written
    request_queue_size = 128

    def __init__(self, where, work, version):
        self.work, self.version, self.on_network = work, version, isinstance(where, int)
        self._slots = threading.BoundedSemaphore(work.jobs + work.most_waiting + _SPARE)
        if not self.on_network:
            self.address_family = socket.AF_UNIX
            _remove_stale(where)
        super().__init__(("127.0.0.1", where) if self.on_network else where, _Handler)

    def server_bind(self):
        """Without looking up names; a socket that is a file is for this user alone."""
        before = os.umask(0o177)
        try:
            socketserver.TCPServer.server_bind(self)
        finally:
            os.umask(before)
        self.server_name, self.server_port = "localhost", self.server_address[1] if self.on_network else 0

    def verify_request(self, request, client_address):
        return self.on_network or not peers.is_candidate(request)

    def process_request(self, request, client_address):
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        try:
            request.setblocking(False)
            request.sendall(_BUSY)
        except OSError:
            pass
        self.shutdown_request(request)

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request, client_address):
        """A connection that broke: the others go on."""


def _remove_stale(path):
    """A socket that a killed server has left. OSError where one listens there, or where it is no socket."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise OSError(errno.EEXIST, "not a socket", path)
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX) as tried:
        try:
            tried.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise OSError(errno.EADDRINUSE, "a server listens there", path)
