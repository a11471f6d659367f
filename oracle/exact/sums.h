// SPDX-License-Identifier: Apache-2.0
// Internal: the only O(keys * head_dim) loops of the fast path, written so that they vectorise.
#pragma once

#include <cstddef>
#include <vector>

namespace assay::oracle {

/** sum q_i k_i and sum |q_i k_i|; products of 16-bit elements are exact in double. */
struct DotResult {
  double value, magnitude;
};
DotResult dot(const double *q, const float *k, int head_dim);

/** sum over keys of coefficient_j * v_ji, and of |coefficient_j * v_ji|. */
void weighted_sums(const float *v, size_t keys, int head_dim, const double *coefficient,
                   double *sum);
void weighted_magnitudes(const float *v, size_t keys, int head_dim, const double *coefficient,
                         double *sum);

/** u.v of every key. */
void along(const float *v, size_t keys, int head_dim, const double *u, double *product);

/** Adds weight * v v^T, the upper triangle of [head_dim, head_dim]. */
void add_outer(const float *v, int head_dim, double weight, double *sum);

/** sum over keys of |a_j v_ji - b_j center_i|. */
void centered_magnitudes(const float *v, size_t keys, int head_dim, const double *a,
                         const double *b, const double *center, double *sum);

} // namespace assay::oracle
