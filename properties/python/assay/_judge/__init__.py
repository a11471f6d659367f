# SPDX-License-Identifier: Apache-2.0
"""What is behind judging.py: arguments as a call, the library that decides it, its report, files, and words about what fails."""
