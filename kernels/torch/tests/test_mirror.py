# SPDX-License-Identifier: Apache-2.0
"""Tensors over a copy of a case lie at any address: page 0 of a pool may be below 0 or beyond 2^63."""
import pytest

torch = pytest.importorskip("torch", minversion="2.4")
import mirror

LIKE = torch.zeros(6, 4, dtype=torch.bfloat16).t()


@pytest.mark.parametrize("address", [4096, (1 << 63) + 64, -(1 << 33), (1 << 64) - (1 << 33), (1 << 64) + 4096])
def test_at_any_address(address):
    keep = []
    tensor = mirror.tensor_at(address, LIKE, torch.device("cpu"), keep)
    assert (tensor.data_ptr() - address) % (1 << 64) == 0
    assert (tensor.shape, tensor.stride(), tensor.dtype) == (LIKE.shape, LIKE.stride(), LIKE.dtype)


@pytest.mark.parametrize("made, says", [(torch.zeros(4, dtype=torch.int16), "not 0x1000"), (torch.zeros(4), "float32, not torch.int16")])
def test_another_tensor_is_refused(made, says, monkeypatch):
    monkeypatch.setattr(mirror, "from_dlpack", lambda capsule: made)
    with pytest.raises(AssertionError, match=says):
        mirror.tensor_at(4096, LIKE, torch.device("cpu"), [])
