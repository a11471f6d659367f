# SPDX-License-Identifier: Apache-2.0
"""The structs are those of the header of this tree."""
import ctypes

import pytest

pytest.importorskip("torch", minversion="2.4")
import assay_abi
from assay_torch import structs

NAMES = (
    "PagedKv", "PagedParams", "PagedChoice", "CascadeLevel", "CascadeParams", "MergeStateParams", "MergeStatesParams",
    "ExchangeParams",
)  # fmt: skip


def layout(struct):
    """(name, kind, offset) of each field; of pointers it only counts that they are some."""
    def kind(of):
        if issubclass(of, ctypes.Structure):
            return layout(of)
        return "pointer" if of is ctypes.c_void_p or hasattr(of, "contents") else of

    return [(name, kind(of), getattr(struct, name).offset) for name, of in struct._fields_]


@pytest.mark.parametrize("name", NAMES)
def test_fields_are_those_of_the_header(name):
    assert layout(getattr(structs, name)) == layout(getattr(assay_abi, name))


def test_a_struct_that_lacks_a_field_differs():
    shorter = type("Shorter", (ctypes.Structure,), {"_fields_": structs.PagedParams._fields_[:-1]})
    assert layout(shorter) != layout(assay_abi.PagedParams)
