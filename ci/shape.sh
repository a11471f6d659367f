#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints files over 300 lines; exit 1 for one over 600, and for everything else that `tree.py layers` refuses.
exec "$(dirname "$0")/tree.py" shape
