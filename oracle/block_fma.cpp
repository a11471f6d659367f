// SPDX-License-Identifier: Apache-2.0
#include "oracle/block_fma.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "oracle/dtype.h"

namespace assay::oracle {
namespace {

constexpr int kMaxBlock = 64;
constexpr int kNoExponent = -100000;

struct Operand {
  double value;
  int exponent;
};

Operand operand(float x, int min_exponent) {
  if (x == 0.0f) return {0.0, kNoExponent};
  return {x, std::max(std::ilogb(x), min_exponent)};
}

// Keeps the bits above 2^quantum, dropping the rest towards zero.
double truncate_at(double x, int quantum) {
  return std::ldexp(std::trunc(std::ldexp(x, -quantum)), quantum);
}

// At most 2^33 quanta: the double holds the sum exactly.
double truncate_to_fp32(double sum) {
  if (sum == 0.0) return 0.0;
  const int quantum = std::max(std::ilogb(sum), -126) - 23;
  return truncate_at(sum, quantum);
}

double step(double accumulator, const Operand *a, const Operand *b, int count, int fraction_bits) {
  int top = accumulator == 0.0 ? kNoExponent : std::max(std::ilogb(accumulator), -126);
  for (int i = 0; i < count; ++i) {
    if (a[i].value == 0.0 || b[i].value == 0.0) continue;
    top = std::max(top, a[i].exponent + b[i].exponent);
  }
  if (top == kNoExponent) return 0.0;
  const int quantum = top - fraction_bits;
  double sum = truncate_at(accumulator, quantum);
  for (int i = 0; i < count; ++i)
    sum += truncate_at(a[i].value * b[i].value, quantum);
  return truncate_to_fp32(sum);
}

} // namespace

std::vector<double> replay_scores(const RowProblem &problem) {
  const KeySet &keys = *problem.keys;
  const int d = keys.head_dim, block = problem.arithmetic.mma_block;
  if (block < 1 || block > kMaxBlock) {
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
    double sum = 0.0;
    for (int i = 0; i < d; i += block) {
      sum = step(sum, q.data() + i, k.data() + i, std::min(block, d - i),
                 problem.arithmetic.mma_fraction_bits);
    }
    scores[j] = sum;
  }
  return scores;
}

} // namespace assay::oracle
