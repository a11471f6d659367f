# SPDX-License-Identifier: Apache-2.0
"""`python -m assay serve`: judge-callable for clients of this machine."""
import argparse
import contextlib
import os
import signal
import sys
import threading

from .. import __version__
from . import command, isolation, task
from .http_server import Server
from .judges import Judges
from .work import Work


def parser():
    made = argparse.ArgumentParser(
        prog="assay serve", description="Judges functions of tensors for clients of this machine: POST /judge with the JSON object that a line of "
        "judge-callable --batch is, GET /status. Whoever may connect runs code as this user: with --port that is everyone on this machine.",
        epilog="Targets are files or modules as this process finds them. SIGTERM: what runs is finished, nothing new is taken.",
    )  # fmt: skip
    where = made.add_mutually_exclusive_group(required=True)
    where.add_argument("--socket", metavar="PATH", help="a Unix socket, for this user alone")
    where.add_argument("--port", type=task.whole(0, 65535), metavar="N", help="of 127.0.0.1; 0: one that is free, said on standard error")
    made.add_argument("--jobs", type=command.JOBS, default=1, metavar="N", help="candidates at once (1)")
    made.add_argument("--queue", type=task.whole(0, 1 << 16), default=256, metavar="N", help="candidates that may wait; others get 503 (256)")
    command.add_limits(made)
    return made


def main(arguments):
    options = parser().parse_args(arguments)
    isolation.unreadable()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    work = Work(Judges(options.jobs, command.limits_of(options)), options.jobs, options.queue)
    try:
        server = Server(options.port if options.socket is None else options.socket, work, __version__)
    except OSError as error:
        print(f"assay serve: {options.socket or options.port}: {error.strerror or error}", file=sys.stderr)
        return command.USAGE
    _serve(server, options.socket, stop)
    return 0


def _serve(server, path, stop):
    """Until `stop` is set and what runs is answered."""
    listening = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
    listening.start()
    print(f"assay serve: listens on {path or f'http://127.0.0.1:{server.server_port}'}", file=sys.stderr, flush=True)
    stop.wait()
    server.work.end()
    server.shutdown()
    listening.join()
    server.server_close()
    if path:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
