# SPDX-License-Identifier: Apache-2.0
"""Two GPUs without one: tensors without memory are on any device; stand-ins keep torch's calls."""
import contextlib
import ctypes
import os
import types

import pytest

torch = pytest.importorskip("torch", minversion="2.4")
from torch._subclasses.fake_tensor import FakeTensorMode

import assay_torch
from assay_torch import _abi, library, operators, tensors
from batches import zeroed

SIZES = dict(num_heads=4, head_dim=64, dtype=torch.float16, max_rows=3)


@pytest.fixture
def on_gpus():
    """Tensors without memory."""
    with FakeTensorMode():
        yield


def made(device):
    """{function: (function, arguments)} of right calls whose tensors are on a device."""
    t = lambda *shape, dtype=torch.float16: torch.empty(shape, dtype=dtype, device=device)  # noqa: E731
    i, f = (lambda *shape, of=of: t(*shape, dtype=of) for of in (torch.int32, torch.float32))
    call = dict(q=t(3, 4, 64), kv_cache=(t(9, 16, 2, 64), t(9, 16, 2, 64)), page_table=i(3, 2), seq_lens=i(3))
    state = dict(o_a=t(3, 4, 64), lse_a=f(3, 4), o_b=t(3, 4, 64), lse_b=f(3, 4))
    return {
        "paged": (assay_torch.paged_attention, dict(call, return_lse=True, qo_indptr=i(4), sinks=f(4), alibi_slopes=f(4), k_scale=f(1), v_scale=f(2), global_lens=i(3))),
        "tree": (assay_torch.tree_attention, dict(call, lse=f(3, 4))),
        "cascade": (assay_torch.cascade_attention, dict(q=call["q"], levels=[(*list(call.values())[1:], i(4))], lse=f(3, 4))),
        "merge_state": (assay_torch.merge_state, state),
        "merge_states": (assay_torch.merge_states, dict(o_in=t(7, 4, 64), lse_in=f(7, 4), indptr=i(4))),
        "merge_states of each row": (assay_torch.merge_states, dict(o_in=t(3, 2, 4, 64), lse_in=f(3, 2, 4))),
    }  # fmt: skip


@pytest.mark.parametrize("name", made("meta"))
def test_outputs_are_made_where_the_inputs_are(on_gpus, name):
    for device in ("cuda:1", "cuda:0"):
        function, arguments = made(device)[name]
        out, lse = function(**arguments)
        assert (str(out.device), str(lse.device)) == (device, device) and lse.dtype == torch.float32 and out.dtype == torch.float16


@pytest.mark.parametrize("name", made("meta"))
def test_a_tensor_on_another_gpu_is_named(on_gpus, name):
    function, arguments = made("cuda:1")[name]
    elsewhere = made("cuda:0")[name][1]
    for argument, value in arguments.items():
        if isinstance(value, bool) or argument in ("q", "o_a", "o_in"):
            continue
        with pytest.raises(assay_torch.InvalidArgument, match="is on cuda:[01], expected cuda:[01] as"):
            function(**{**arguments, argument: elsewhere[argument]})
    if name == "cascade":
        level = arguments["levels"][0]
        for i, part in enumerate(level):
            wrong = (*level[:i], (part[0], elsewhere["levels"][0][0][1]) if i == 0 else elsewhere["levels"][0][i], *level[i + 1 :])
            with pytest.raises(assay_torch.InvalidArgument, match=rf"{('v', 'page_table', 'seq_lens', 'segment_indptr')[i]}\[1\] is on cuda:0"):
                function(arguments["q"], [level, wrong])


def test_what_decides_a_call_says_which_gpu(on_gpus):
    """A call that was prepared for one is not taken for another."""
    made = {device: torch.empty(3, device=device) for device in ("cuda:0", "cuda:1", "cpu")}
    assert len({tensors.facts(x) for x in made.values()}) == 3
    for looks in (tensors.vector, tensors.scale_stride):
        for count in (3, 1):
            looks("sinks", made["cuda:1"][:count], count, ("q", made["cuda:1"]))
            with pytest.raises(assay_torch.InvalidArgument, match="sinks is on cuda:0, expected cuda:1 as q"):
                looks("sinks", made["cuda:0"][:count], count, ("q", made["cuda:1"]))


def test_every_operator_runs_on_both_kinds_of_devices():
    for name in ("paged_attention", "tree_attention", "plan_into", "new_plan", "cascade_attention", "merge_state", "merge_states", "exchange_states"):
        assert all(torch._C._dispatch_has_kernel_for_dispatch_key(f"assay_torch::{name}", key) for key in ("CPU", "CUDA"))
        assert torch.Tag.needs_fixed_stride_order in getattr(torch.ops.assay_torch, name).default.tags and callable(getattr(operators, name))


def test_a_library_of_gpus_is_asked_with_their_device_current(monkeypatch):
    """And holds the interpreter lock, as its launches are short; the executor's does not."""
    on = []

    @contextlib.contextmanager
    def current(device):
        on.append(device)
        yield
        on.pop()

    monkeypatch.setattr(torch.cuda, "device", current)
    for target, kind, expected in ((library.CUDA, ctypes.PyDLL, [torch.device("cuda:1")]), (library.SIMT, ctypes.CDLL, [])):
        made, seen = library.Library(target, os.environ["ASSAY_LIBRARY_SIMT"]), []
        assert type(made._dll) is kind and made.target == target and made.path == os.environ["ASSAY_LIBRARY_SIMT"]
        monkeypatch.setattr(made, "function", lambda name: lambda *given: seen.append((name, list(on))) or 0)  # noqa: B023
        made.ask("some_size", _abi.PagedParams(), torch.device("cuda:1"))
        assert seen == [("some_size", expected)] and not on


def test_a_library_of_another_abi_is_refused(monkeypatch):
    """It takes the structs of earlier headers, and not of later ones."""
    path, minor = os.environ["ASSAY_LIBRARY_SIMT"], library.ABI_MINOR
    for name, number in (("ABI_MINOR", minor + 1), ("ABI_MAJOR", library.ABI_MAJOR + 1)):
        with monkeypatch.context() as patched:
            patched.setattr(library, name, number)
            with pytest.raises(assay_torch.Unsupported, match=rf"is of ABI version 0\.{minor}, expected {library.ABI_MAJOR}\.{library.ABI_MINOR} or a later"):
                library.Library(library.SIMT, path)
    monkeypatch.setattr(library, "ABI_MINOR", minor - 1)
    assert library.Library(library.SIMT, path).path == path


class Window:
    """A window on a GPU, as far as Windows looks at it."""

    device = torch.device("cuda:1")

    def __init__(self, log):
        self.zero_ = lambda: log.append("zeros")

    def data_ptr(self):
        return 512


def test_windows_of_a_gpu(monkeypatch):
    """The host reads the status beside a kernel; a window is zeros before anybody goes on."""
    log, zeros = [], torch.zeros
    monkeypatch.setattr(torch, "zeros", lambda *shape, pin_memory=False, **how: log.append(("status", pin_memory)) or zeros(*shape, **how))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: log.append(device))
    windows = assay_torch.Windows(Window(log), [256, 512], 1, **SIZES)
    windows.status[0] = 1
    windows.clear(lambda: log.append("wait"))
    assert log == [("status", True), "wait", "zeros", torch.device("cuda:1"), "wait"] and windows.missing() == []
    windows.clear()
    assert log[5:] == ["zeros", torch.device("cuda:1")]
    host = zeroed(assay_torch.Windows.bytes("cpu", 1, **SIZES), "cpu")
    assert assay_torch.Windows(host, [host.data_ptr()], 0, **SIZES).heads == 0 and log[-1] == ("status", False)


@pytest.mark.parametrize("heads", ["scatter", "all"])
def test_windows_of_a_group(monkeypatch, heads):
    """They are as long as the ranks need, at the addresses of a kept handle, and are cleared."""
    dist, memory, log = pytest.importorskip("torch.distributed"), pytest.importorskip("torch.distributed._symmetric_memory"), []
    sizes = dict(SIZES, heads=heads)

    def empty(size, dtype, device):
        log.append((size, dtype, device))
        return zeroed(size, device).fill_(7)

    def rendezvous(window, group):
        log.append(group)
        return types.SimpleNamespace(rank=2, buffer_ptrs=(256, 512, window.data_ptr()))

    monkeypatch.setattr(memory, "empty", empty)
    monkeypatch.setattr(memory, "rendezvous", rendezvous)
    monkeypatch.setattr(dist, "get_world_size", lambda group: 3)
    monkeypatch.setattr(dist, "barrier", lambda group: log.append(("wait", group)))
    made = assay_torch.Windows.symmetric("group", device="cpu", **sizes)
    assert log == [(assay_torch.Windows.bytes("cpu", 3, **sizes), torch.uint8, torch.device("cpu")), "group", ("wait", "group"), ("wait", "group")]
    assert (made.rank, made.num_ranks, made.max_rows, made.own_heads) == (2, 3, 3, (0, 4) if heads == "all" else (2, 4)) and not made.window.any()
    assert made._handle.rank == 2 and made.addresses[:2] == [256, 512]
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 5)
    monkeypatch.setattr(assay_torch.Windows, "bytes", lambda device, ranks, **sizes: log.append(device) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        assay_torch.Windows.symmetric("group", **sizes)
    assert log[-1] == torch.device("cuda", 5)
