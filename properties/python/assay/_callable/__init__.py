# SPDX-License-Identifier: Apache-2.0
"""Kernels that are functions of tensors: inputs made for them, a process of their own, a verdict."""
