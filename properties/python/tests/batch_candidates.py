# SPDX-License-Identifier: Apache-2.0
"""Functions that test_judge_batch.py and test_judge_serve.py send to judges; those that look around say what they saw."""
import os
import pathlib
import socket
import struct
import sys
import threading
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), *("..",) * 3, "corpus", "functions"))

from callables import ends_by_a_signal, loses_the_last_key, plain, runs_forever, takes_all_memory  # noqa: F401


def leaves_a_mark_and_runs_forever(q):
    pathlib.Path(__file__).with_suffix(".mark").touch()
    runs_forever(q)


def lists_its_descriptors(q):
    there = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            there[int(fd)] = os.readlink(f"/proc/self/fd/{fd}").partition(":")[0].partition("/assay")[0]
        except OSError:  # the one that listed
            pass
    raise RuntimeError(sorted(there.items()))


def closes_its_channel_and_stays(q):
    os.close(3)
    threading.Event().wait()


def says_the_half_of_a_message(q):
    os.write(3, struct.pack("=Q", 1000) + b"{")
    threading.Event().wait()


def says_a_message_of_a_terabyte(q):
    os.write(3, struct.pack("=Q", 1 << 40))
    while True:
        os.write(3, bytes(1 << 16))


def _end_when_the_next_message_is_awaited(thread):
    while sys._current_frames()[thread].f_code.co_name != "_take":
        time.sleep(0.01)
    os._exit(0)


def ends_after_its_answer(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    threading.Thread(target=_end_when_the_next_message_is_awaited, args=[threading.get_ident()], daemon=True).start()
    return plain(q, k_cache, v_cache, page_table, seq_lens, sm_scale)


def raises_html(q):
    raise RuntimeError("<script>alert(1)</script>\u202e\x1b[31m")


def asks_the_server(q):
    """Sends itself something to judge."""
    with socket.socket(socket.AF_UNIX) as sent:
        sent.connect(os.environ["ASSAY_TEST_SOCKET"])
        sent.sendall(b"GET /status HTTP/1.0\r\n\r\n")
        raise RuntimeError(f"it said {sent.recv(1000)}")
