# SPDX-License-Identifier: Apache-2.0
"""Writes a dump as FlashInfer does at FLASHINFER_LOGLEVEL=10 (flashinfer/api_logging.py), of calls computed in NumPy.

Tensors go to .safetensors, or with torch to .pt."""
import json
import pathlib

import numpy as np
from assay import from_float32, to_float32

SIGNATURES = {
    "BatchDecodeWithPagedKVCacheWrapper.__init__": "(self, float_workspace_buffer: torch.Tensor, kv_layout: str = 'NHD', use_cuda_graph: bool = False, "
    "use_tensor_cores: bool = False, paged_kv_indptr_buffer: Optional[torch.Tensor] = None, backend: str = 'auto') -> None",
    "BatchDecodeWithPagedKVCacheWrapper.plan": "(self, indptr: torch.Tensor, indices: torch.Tensor, last_page_len: torch.Tensor, num_qo_heads: int, "
    "num_kv_heads: int, head_dim: int, page_size: int, *deprecated_positional_args: Any, **kwargs: Any) -> None",
    "BatchDecodeWithPagedKVCacheWrapper.run": "(self, q: torch.Tensor, paged_kv_cache: Union[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]], *args, "
    "q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, out: Optional[torch.Tensor] = None, "
    "return_lse: bool = False, window_left: Optional[int] = None, sinks: Optional[torch.Tensor] = None) -> torch.Tensor",
    "BatchPrefillWithPagedKVCacheWrapper.__init__": "(self, float_workspace_buffer: torch.Tensor, kv_layout: str = 'NHD', use_cuda_graph: bool = False, "
    "backend: str = 'auto') -> None",
    "BatchPrefillWithPagedKVCacheWrapper.plan": "(self, qo_indptr: torch.Tensor, paged_kv_indptr: torch.Tensor, paged_kv_indices: torch.Tensor, "
    "paged_kv_last_page_len: torch.Tensor, num_qo_heads: int, num_kv_heads: int, head_dim_qk: int, page_size: int, head_dim_vo: Optional[int] = None, "
    "custom_mask: Optional[torch.Tensor] = None, packed_custom_mask: Optional[torch.Tensor] = None, causal: bool = False, "
    "pos_encoding_mode: str = 'NONE', use_fp16_qk_reduction: bool = False, sm_scale: Optional[float] = None, window_left: int = -1, "
    "logits_soft_cap: Optional[float] = None) -> None",
    "BatchPrefillWithRaggedKVCacheWrapper.plan": "(self, qo_indptr: torch.Tensor, kv_indptr: torch.Tensor, num_qo_heads: int, num_kv_heads: int, "
    "head_dim_qk: int, causal: bool = False, pos_encoding_mode: str = 'NONE', sm_scale: Optional[float] = None) -> None",
    "BatchPrefillWithRaggedKVCacheWrapper.run": "(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *args, return_lse: bool = False)",
    "MultiLevelCascadeAttentionWrapper.run": "(self, q: torch.Tensor, paged_kv_cache: torch.Tensor)",
    "merge_state": "(v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]",
    "merge_states": "(v: torch.Tensor, s: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]",
    "merge_state_in_place": "(v: torch.Tensor, s: torch.Tensor, v_other: torch.Tensor, s_other: torch.Tensor, mask: Optional[torch.Tensor] = None) -> None",
}
SIGNATURES["BatchPrefillWithPagedKVCacheWrapper.run"] = SIGNATURES["BatchDecodeWithPagedKVCacheWrapper.run"]
_SAFE = {"float16": "F16", "uint16": "BF16", "float32": "F32", "int32": "I32", "int64": "I64", "uint8": "U8", "bool": "BOOL"}


class Dump:
    """A folder of calls. bf16 is uint16, as everywhere in this package."""

    def __init__(self, folder, form="safetensors"):
        self.folder, self.form, self.count, self.process = pathlib.Path(folder), form, 0, 7
        self.folder.mkdir()

    def call(self, name, self_id, args=(), kwargs={}, compute=lambda: (), outputs=True):
        """One call; what `compute` calls is inside it. Returns its results."""
        self.count += 1
        at = self.folder / f"20260822_120000_000_pid{self.process}_{name}_call{self.count:04d}"
        at.mkdir()
        tensors, metadata = {}, {}
        values = {f"arg_{i}": v for i, v in enumerate(([object()] if self_id else []) + list(args))}
        values.update({f"kwarg_{key}": value for key, value in kwargs.items()})
        for key, value in values.items():
            if isinstance(value, np.ndarray):
                tensors[key] = value
            else:
                metadata[key] = self._described(value, key, tensors)
        record = {
            "function_name": name, "module": "flashinfer", "call_sequence": self.count, "process_id": self.process, "input_metadata": metadata,
            "output_metadata": {}, "tensor_format": "torch" if self.form == "pt" else "safetensors",
            "function_signature": SIGNATURES.get(name, "<unavailable>"), "execution_status": "inputs_saved", "self_id": self_id,
            "dump_dir": f"/somewhere/else/{at.name}",
        }  # fmt: skip
        self._tensors(at, "inputs", tensors)
        self._record(at, record)
        results = compute()
        if outputs:
            names = ["result"] if len(results) == 1 else [f"result_{i}" for i in range(len(results))]
            self._tensors(at, "outputs", dict(zip(names, results)))
            self._record(at, {**record, "execution_status": "completed"})
        return results

    def _described(self, value, key, tensors):
        if isinstance(value, np.ndarray):
            tensors[key] = value
            return {"type": "torch.Tensor", "tensor_key": key}
        if isinstance(value, (list, tuple)):
            items = [self._described(item, f"{key}__{i}", tensors) for i, item in enumerate(value)]
            return {"type": type(value).__name__, "length": len(items), "items": items, "truncated": False}
        return value if isinstance(value, (int, float, str, bool, type(None))) else {"type": type(value).__name__, "repr": "..."}

    def _record(self, at, record):
        for path in (at / "metadata.jsonl", self.folder / "session.jsonl"):
            with open(path, "a") as file:
                file.write(json.dumps(record) + "\n")

    def _tensors(self, at, kind, tensors):
        if not tensors:
            return
        if self.form == "pt":
            import torch

            views = {"uint16": lambda a: torch.from_numpy(a.view(np.int16)).view(torch.bfloat16)}
            torch.save({k: views.get(v.dtype.name, torch.from_numpy)(np.ascontiguousarray(v)) for k, v in tensors.items()}, at / f"{kind}.pt")
            return
        header, data = {}, b""
        for name, array in tensors.items():
            raw = np.ascontiguousarray(array).tobytes()
            header[name] = {"dtype": _SAFE[array.dtype.name], "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
        text = json.dumps(header).encode()
        (at / f"{kind}.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)


def merged(states, lse, dtype="bf16"):
    """O and LSE of base 2 of states [n, rows, heads, dim]."""
    top = np.maximum(lse.max(0), -1e30)  # where no state has keys, O is 0
    weights = np.exp2(lse.astype(np.float64) - top)
    total = weights.sum(0)
    out = (weights[..., None] * to_float32(states, dtype)).sum(0) / np.maximum(total, 1e-300)[..., None]
    with np.errstate(divide="ignore"):
        return from_float32(out, dtype), (top + np.log2(total)).astype(np.float32)
