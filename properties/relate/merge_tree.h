// SPDX-License-Identifier: Apache-2.0
// Merging leaves along a tree with the kernel under test, and how far the result may be from the
// exact merge of the leaves.
//
// Bound of a node with children i, computed states (o_i, l_i), each within e_i and lambda_i
// (natural units) of the exact merge of its own leaves. Let G be the exact merge of the computed
// children and lambda = max lambda_i, e = max e_i.
//   - The kernel is within t0 of G (oracle), so is the node's O; its LSE is within t_lse of G's.
//   - LSE is monotone and shifts with its arguments, so G's is within lambda of the exact one.
//   - Replacing l_i by the exact values changes each weight by a factor in exp(+-2 lambda), hence O
//   by
//     at most (exp(2 lambda) - 1) max_i |o_i - O_G|; replacing o_i changes it by at most e.
// So e_node = t0 + e + expm1(2 lambda) max_i |o_i - O_G| (its own e_i included in the difference)
// and lambda_node = t_lse + lambda. No term is a tolerance.
#pragma once

#include <vector>

#include "properties/relate/outcome.h"

namespace assay {

/// One state per (row, head) with its distance to exactness.
struct StateBlock {
  std::vector<uint32_t> o; ///< [rows, heads, head_dim] bits
  std::vector<float> lse;  ///< [rows, heads]
  std::vector<double> o_error;
  std::vector<double> lse_error; ///< in the case's base; infinite when nothing is claimed
};

/// The first `count` leaves of the case's rows, without error.
std::vector<StateBlock> merge_leaves(const Problem &p, int count);

/// Merges children, in order, with one call. merge_state takes two children, merge_states any
/// number. `result` becomes a failure when the call itself goes wrong.
StateBlock merge_children(const Problem &p, Sut &sut,
                          const std::vector<const StateBlock *> &children, CheckResult &result);

/// Left fold over `order`, or one call where the kernel takes any number.
StateBlock merge_in_order(const Problem &p, Sut &sut, const std::vector<StateBlock> &leaves,
                          const std::vector<int> &order, CheckResult &result);

/// Fails unless two merges of the same leaves agree within the sum of their bounds.
CheckResult same_merge(const Problem &p, const StateBlock &a, const StateBlock &b,
                       const std::string &what);

/// Leaves a tree property uses: between 3 and 6.
int leaf_count(const Problem &p);

} // namespace assay
