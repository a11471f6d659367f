// SPDX-License-Identifier: Apache-2.0
#include "properties/tests/reference_merges.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/simt/stream.h"
#include "properties/tests/reference_elements.h"
#include "properties/tests/reference_kernels.h"

namespace assay::reference {
namespace {

struct MergeIn {
  const void *o;
  int64_t at;
  float lse;
};

/// -inf of nothing but empty states; a maximum passes NaN over.
float kept_nan(const std::vector<MergeIn> &states) {
  for (const MergeIn &s : states)
    if (std::isnan(s.lse)) return s.lse;
  return kNegInf;
}

void merge_row(const std::vector<MergeIn> &states, assay_dtype dtype, bool base2, int d,
               std::vector<float> &o, float &lse) {
  float top = kNegInf;
  for (const MergeIn &s : states)
    top = std::max(top, s.lse);
  if (bug == Bug::kMaxOfFirst && !states.empty()) top = states[0].lse;
  o.assign(d, 0.0f);
  lse = top;
  if (top == kNegInf && bug != Bug::kMaxOfFirst) {
    lse = kept_nan(states);
    if (std::isnan(lse)) o.assign(d, lse);
    return;
  }
  int live = 0, only = 0;
  for (size_t s = 0; s < states.size(); ++s)
    if (states[s].lse != kNegInf) ++live, only = static_cast<int>(s);
  if (live == 1 && bug != Bug::kNoInfGuard) {
    for (int i = 0; i < d; ++i)
      o[i] = load(states[only].o, states[only].at + i, dtype);
    lse = states[only].lse;
    return;
  }
  float sum = 0, mean = 0;
  for (size_t s = 0; s < states.size(); ++s) {
    if (states[s].lse == kNegInf && bug != Bug::kNoInfGuard) continue;
    if (bug == Bug::kNanScoresDropped && std::isnan(states[s].lse)) continue;
    float w =
        base2 ? std::exp2(states[s].lse - top) : std::exp2((states[s].lse - top) * 1.44269504f);
    if (bug == Bug::kFirstTwice && s == 0) w *= 2;
    sum += w;
    mean += states[s].lse / static_cast<float>(live);
    for (int i = 0; i < d; ++i)
      o[i] = std::fma(w, load(states[s].o, states[s].at + i, dtype), o[i]);
  }
  for (float &x : o)
    x *= 1.0f / sum;
  lse = base2 ? top + std::log2(sum) : top + std::log2(sum) * 0.69314718f;
  if (bug == Bug::kMeanLse) lse = mean;
}

template <class P>
void store_merged(const P &p, int r, int h, const std::vector<float> &o, float lse) {
  static thread_local int calls = 0;
  float nudge = bug == Bug::kCallCounter ? static_cast<float>(calls++ % 2) * 0.25f : 0.0f;
  if (bug == Bug::kScheduleDependent &&
      static_cast<simt::Stream *>(p.stream)->schedule.order == simt::Order::kDescending)
    nudge = 0.25f;
  for (int i = 0; i < p.head_dim; ++i)
    store(p.out, r * p.out_stride_row + h * p.out_stride_head + i, p.dtype,
          nudge == 0.0f ? o[i] : o[i] + nudge);
  if (bug == Bug::kStrayWrite && p.out_stride_head > p.head_dim && h + 1 < p.num_heads)
    store(p.out, r * p.out_stride_row + h * p.out_stride_head + p.head_dim, p.dtype, 1.25f);
  if (p.lse) p.lse[r * p.lse_stride_row + h * p.lse_stride_head] = lse;
}

} // namespace

assay_status run_merge_state(const void *params) {
  const auto &p = *static_cast<const assay_merge_state_params *>(params);
  for (int r = 0; r < p.num_rows; ++r)
    for (int h = 0; h < p.num_heads; ++h) {
      int head = bug == Bug::kFixedKvHead ? 0 : h;
      if (bug == Bug::kWritesEarly)
        store(p.out, r * p.out_stride_row + h * p.out_stride_head, p.dtype, 7);
      std::vector<float> o;
      float lse;
      std::vector<MergeIn> in = {{p.o_a, r * p.o_a_stride_row + head * p.o_a_stride_head,
                                  p.lse_a[r * p.lse_a_stride_row + head * p.lse_a_stride_head]},
                                 {p.o_b, r * p.o_b_stride_row + head * p.o_b_stride_head,
                                  p.lse_b[r * p.lse_b_stride_row + head * p.lse_b_stride_head]}};
      if (bug == Bug::kBatchOrder && p.num_rows > 1) std::swap(in[0].lse, in[1].lse);
      merge_row(in, p.dtype, p.lse_base == ASSAY_LSE_BASE_2, p.head_dim, o, lse);
      if (bug == Bug::kNanLeak)
        o[0] +=
            0.0f *
            load(p.o_a, ((r + 1) % p.num_rows) * p.o_a_stride_row + h * p.o_a_stride_head, p.dtype);
      store_merged(p, r, h, o, lse);
    }
  return ASSAY_OK;
}

assay_status run_merge_states(const void *params) {
  const auto &p = *static_cast<const assay_merge_states_params *>(params);
  for (int r = 0; r < p.num_rows; ++r)
    for (int h = 0; h < p.num_heads; ++h) {
      int64_t first = p.indptr ? p.indptr[r] : int64_t{r} * p.num_states;
      int64_t last = p.indptr ? p.indptr[r + 1] : first + p.num_states;
      std::vector<MergeIn> in;
      for (int64_t s = first; s < last; ++s)
        in.push_back({p.o_in, s * p.o_in_stride_state + h * p.o_in_stride_head,
                      p.lse_in[s * p.lse_in_stride_state + h * p.lse_in_stride_head]});
      std::vector<float> o;
      float lse;
      merge_row(in, p.dtype, p.lse_base == ASSAY_LSE_BASE_2, p.head_dim, o, lse);
      store_merged(p, r, h, o, lse);
    }
  return ASSAY_OK;
}

} // namespace assay::reference
