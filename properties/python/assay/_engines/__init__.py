# SPDX-License-Identifier: Apache-2.0
"""Calls of engines as calls that can be judged: vLLM's in its process, FlashInfer's in a process or out of its dumps."""
