# SPDX-License-Identifier: Apache-2.0
"""The shape of a decode-attention call, as a caller writes it."""
import dataclasses

#: Largest value of each number; below 1 none is (q_len, page_size: as said in Shape).
_MOST = {"batch": 1 << 16, "num_qo_heads": 1 << 12, "num_kv_heads": 1 << 12, "head_dim": 512, "keys": 1 << 22, "page_size": 1 << 16,
         "q_len": 1 << 12}  # fmt: skip
_DTYPES = ("bf16", "fp16")
_TENSORS_MOST = 16 << 30  #: bytes of all tensors of a call


@dataclasses.dataclass(frozen=True)
class Shape:
    """What a call looks like; its lengths are drawn.

    batch         requests, 1 to 65536
    num_qo_heads  heads of q, a multiple of num_kv_heads
    head_dim      elements of a head, 1 to 512
    keys          keys of the longest request: columns of the page table times page_size, or a little less
    page_size     keys of a page; 0: a dense cache [batch, keys, num_kv_heads, head_dim] without a table
    q_len         query tokens of each request; causal where there are several
    dtype         of q, the cache and out (which may also be fp32): bf16 or fp16
    """

    batch: int = 8
    num_qo_heads: int = 32
    num_kv_heads: int = 8
    head_dim: int = 128
    keys: int = 1024
    page_size: int = 16
    q_len: int = 1
    dtype: str = "bf16"

    def __post_init__(self):
        for name, most in _MOST.items():
            value, least = getattr(self, name), 0 if name == "page_size" else 1
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise ValueError(f"assay: shape: {name} is {value!r}, expected {least} to {most}")
        if self.dtype not in _DTYPES:
            raise ValueError(f"assay: shape: dtype is {self.dtype!r}, expected one of {', '.join(_DTYPES)}")
        if self.num_qo_heads % self.num_kv_heads:
            raise ValueError(f"assay: shape: heads is {self.num_qo_heads}/{self.num_kv_heads}, expected a multiple of the second number")
        if self.q_len > self.keys:
            raise ValueError(f"assay: shape: q_len is {self.q_len}, expected at most keys, {self.keys}")
        if self.nbytes > _TENSORS_MOST:
            raise ValueError(f"assay: shape: its tensors have {self.nbytes >> 30} GiB, expected at most {_TENSORS_MOST >> 30}")

    @classmethod
    def parse(cls, text):
        """Of "batch=8,heads=32/8,head_dim=128,keys=1024,page_size=16"; what is missing has the default. A Shape stays itself."""
        if isinstance(text, Shape):
            return text
        if not isinstance(text, str):
            raise TypeError(f"assay: shape is a {type(text).__name__}, expected a text or a Shape")
        given, known = {}, [field.name for field in dataclasses.fields(cls)]
        for part in filter(None, text.split(",")):
            name, equals, value = part.strip().partition("=")
            if name == "heads":
                qo, _, kv = value.partition("/")
                given.update(num_qo_heads=_number(part, qo), num_kv_heads=_number(part, kv or qo))
            elif name in known and equals:
                given[name] = value if name == "dtype" else _number(part, value)
            else:
                raise ValueError(f"assay: shape: {part!r}, expected heads=Q/KV or one of {', '.join(known)} with =VALUE")
        return cls(**given)

    @property
    def columns(self):
        """Pages of the longest request."""
        return -(-self.keys // self.page_size) if self.page_size else 0

    @property
    def nbytes(self):
        slots = self.columns * self.page_size if self.page_size else self.keys
        cache = 2 * self.batch * slots * self.num_kv_heads * self.head_dim
        return 2 * (cache + 2 * self.batch * self.q_len * self.num_qo_heads * self.head_dim)

    def __str__(self):
        parts = [f"batch={self.batch}", f"heads={self.num_qo_heads}/{self.num_kv_heads}"]
        parts += [f"{name}={getattr(self, name)}" for name in ("head_dim", "keys", "page_size", "q_len", "dtype")]
        return ",".join(parts)


def _number(part, text):
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"assay: shape: {part!r}, expected a whole number") from None
