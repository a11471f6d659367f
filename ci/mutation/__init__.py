# SPDX-License-Identifier: Apache-2.0
"""Mutants by machine: what ci/machine_mutants.py and ci/mutation_score.py share."""
