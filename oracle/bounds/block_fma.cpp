// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/block_fma.h"

#include <algorithm>
#include <stdexcept>

#include "oracle/bounds/block_fma_step.h"
#include "oracle/exact/dtype.h"

namespace assay::oracle {

std::vector<double> replay_scores(const RowProblem &problem) {
  using namespace block_fma;
  const KeySet &keys = *problem.keys;
  const int d = keys.head_dim, block = problem.arithmetic.mma_block;
  const int fraction_bits = problem.arithmetic.mma_fraction_bits;
  if (block < 1 || block > kMaxBlock || fraction_bits < 0 || fraction_bits > kMaxFractionBits) {
    throw std::invalid_argument("oracle: the bit replay needs a block-FMA kernel");
  }
  const int min_exponent = format_of(problem.operand()).min_exponent;
  std::vector<Operand> q, k(static_cast<size_t>(d));
  for (float x : problem.q)
    q.push_back(operand(x, min_exponent));
  std::vector<double> scores(keys.size());
  for (size_t j = 0; j < keys.size(); ++j) {
    for (int i = 0; i < d; ++i)
      k[static_cast<size_t>(i)] = operand(keys.key(j)[i], min_exponent);
    Accumulator sum;
    for (int i = 0; i < d; i += block)
      sum = step(sum, q.data() + i, k.data() + i, std::min(block, d - i), fraction_bits);
    scores[j] = sum.value();
  }
  return scores;
}

} // namespace assay::oracle
