# SPDX-License-Identifier: Apache-2.0
"""The kernels as tests: one for each property."""
from kernel import merge_state as test_merge_state, merge_states as test_merge_states  # noqa: F401
