// SPDX-License-Identifier: Apache-2.0
#include "properties/relate/merge_tree.h"

#include <cmath>
#include <limits>

#include "properties/call/element.h"
#include "properties/call/materialise.h"
#include "properties/relate/outcome.h"
#include "properties/relate/relation.h"

namespace assay {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

size_t slot(const Problem &p, int row, int head) {
  return static_cast<size_t>(row) * p.num_kv_heads + head;
}

StateBlock empty_block(const Problem &p) {
  size_t states = static_cast<size_t>(p.batch) * p.num_kv_heads;
  StateBlock b;
  b.o.resize(states * p.head_dim);
  b.lse.resize(states);
  b.o_error.resize(states * p.head_dim);
  b.lse_error.resize(states);
  return b;
}

Problem node_problem(const Problem &p, int children) {
  Problem node = p;
  node.num_states = children;
  node.ragged = false;
  node.has_lse = true;
  node.in_place = InPlace::kNo;
  return node;
}

/// Writes child `index` into the inputs of a node.
void put_child(Tensors &t, int index, const StateBlock &child) {
  const Problem &p = t.problem;
  bool pair = p.family == Family::kMergeState;
  const View &o = t.in_o[pair ? index : 0], &lse = t.in_lse[pair ? index : 0];
  for (int r = 0; r < p.batch; ++r)
    for (int h = 0; h < p.num_kv_heads; ++h) {
      int state = pair ? r : t.first_state[r] + index;
      size_t s = slot(p, r, h);
      t.set_bits(lse, state, h, 0, to_bits(Dtype::kFp32, child.lse[s]));
      for (int i = 0; i < p.head_dim; ++i)
        t.set_bits(o, state, h, i, child.o[s * p.head_dim + i]);
    }
}

/// Errors of one (row, head) of a node; see the header.
void fill_errors(const Problem &p, const std::vector<const StateBlock *> &children, size_t s,
                 const RowBound &bound, StateBlock &node) {
  if (bound.empty) return; // exact: 0 and -inf
  double lambda = 0;
  for (const StateBlock *child : children)
    if (!std::isinf(child->lse[s])) lambda = std::max(lambda, child->lse_error[s]);
  double natural = p.lse_base == LseBase::kBase2 ? lambda * 0.6931471805599454 : lambda;
  node.lse_error[s] = bound.claim ? bound.lse_radius + lambda : kInfinity;
  for (int i = 0; i < p.head_dim; ++i) {
    size_t at = s * p.head_dim + i;
    double error = 0, spread = 0;
    for (const StateBlock *child : children) {
      if (std::isinf(child->lse[s])) continue;
      error = std::max(error, child->o_error[at]);
      spread = std::max(
          spread, std::fabs(comparable(from_bits(p.dtype, child->o[at]), p.dtype) - bound.o[i]));
    }
    double moved = natural > 0 ? std::expm1(2 * natural) * (spread + error) * (1 + 0x1p-40) : 0;
    node.o_error[at] = bound.claim ? bound.o_radius[i] + error + moved : kInfinity;
  }
}

} // namespace

int leaf_count(const Problem &p) { return 3 + pick(p, 0x1eaf, 4); }

std::vector<StateBlock> merge_leaves(const Problem &p, int count) {
  std::vector<StateBlock> leaves(count, empty_block(p));
  for (int l = 0; l < count; ++l)
    for (int r = 0; r < p.batch; ++r)
      for (int h = 0; h < p.num_kv_heads; ++h) {
        size_t s = slot(p, r, h);
        leaves[l].lse[s] = state_lse(p, {r, h, l, 0}, count);
        for (int i = 0; i < p.head_dim; ++i)
          leaves[l].o[s * p.head_dim + i] = std::isinf(leaves[l].lse[s])
                                                ? poison_bits(p.poison, p.dtype, i)
                                                : value_bits(p, {r, h, l, i});
      }
  return leaves;
}

StateBlock merge_children(const Problem &p, Sut &sut,
                          const std::vector<const StateBlock *> &children, CheckResult &result) {
  Problem node = node_problem(p, static_cast<int>(children.size()));
  StateBlock out = empty_block(p);
  if (!result.passed()) return out;
  Tensors t = materialise(node);
  for (size_t c = 0; c < children.size(); ++c)
    put_child(t, static_cast<int>(c), *children[c]);
  Outcome run = run_tensors(std::move(t), sut);
  result.also(run.check);
  if (!result.passed()) return out;
  RunBounds bounds(run, sut);
  for (int r = 0; r < p.batch; ++r)
    for (int h = 0; h < p.num_kv_heads; ++h) {
      size_t s = slot(p, r, h);
      out.lse[s] = run.after.out_lse(r, h);
      for (int i = 0; i < p.head_dim; ++i)
        out.o[s * p.head_dim + i] = run.after.bits(run.after.o, r, h, i);
      fill_errors(p, children, s, bounds.row(r, h), out);
    }
  return out;
}

StateBlock merge_in_order(const Problem &p, Sut &sut, const std::vector<StateBlock> &leaves,
                          const std::vector<int> &order, CheckResult &result) {
  if (p.family == Family::kMergeStates) {
    std::vector<const StateBlock *> children;
    for (int leaf : order)
      children.push_back(&leaves[leaf]);
    return merge_children(p, sut, children, result);
  }
  StateBlock fold = leaves[order[0]];
  for (size_t i = 1; i < order.size(); ++i)
    fold = merge_children(p, sut, {&fold, &leaves[order[i]]}, result);
  return fold;
}

CheckResult same_merge(const Problem &p, const StateBlock &a, const StateBlock &b,
                       const std::string &what) {
  for (int r = 0; r < p.batch; ++r)
    for (int h = 0; h < p.num_kv_heads; ++h) {
      size_t s = slot(p, r, h);
      if (a.lse[s] != b.lse[s]) { // equal infinities are equal
        CheckResult c =
            within(b.lse[s], a.lse[s], a.lse_error[s] + b.lse_error[s], {r, h, -1}, what);
        if (!c.passed()) return c;
      }
      for (int i = 0; i < p.head_dim; ++i) {
        size_t at = s * p.head_dim + i;
        CheckResult c = within(comparable(from_bits(p.dtype, b.o[at]), p.dtype),
                               comparable(from_bits(p.dtype, a.o[at]), p.dtype),
                               a.o_error[at] + b.o_error[at], {r, h, i}, what);
        if (!c.passed()) return c;
      }
    }
  return CheckResult::pass();
}

} // namespace assay
