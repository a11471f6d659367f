# SPDX-License-Identifier: Apache-2.0
"""The kernel as tests: one for each property."""
from kernel import attention as test_attention  # noqa: F401
