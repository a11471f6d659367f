#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints files over 300 lines, folders over 25 files, headers without a source of their own name, and upward
# includes, each with its reason from ci/SHAPE.md; exit 1 when one has none.
exec "$(dirname "$0")/tree.py" shape
