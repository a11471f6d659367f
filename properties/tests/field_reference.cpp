// SPDX-License-Identifier: Apache-2.0
#include "properties/tests/field_reference.h"

#include <bit>
#include <vector>

#include "kernels/simt/stream.h"
#include "properties/relate/field61.h"
#include "properties/tests/reference_kernels.h"

namespace assay::reference {
namespace {

using namespace field61;

constexpr uint32_t kMinusInfinity = 2;
constexpr uint64_t kNone = uint64_t{1} << 63;

/// A row under construction: sums of weights, and of weights times values.
struct Sums {
  uint64_t mass = 0, divisor = 0;
  std::vector<uint64_t> o;
  bool empty = true;
  void add(uint64_t weight, auto value) {
    empty = false;
    mass = (mass + weight) % kPrime;
    divisor = (divisor + weight) % kPrime;
    for (size_t i = 0; i < o.size(); ++i)
      o[i] = (o[i] + times(weight, value(i))) % kPrime;
  }
};

uint32_t enter(void *stream, const simt::WideNumber &number) {
  auto &rows = static_cast<simt::Stream *>(stream)->numbers.rows;
  rows.push_back(number);
  return static_cast<uint32_t>(rows.size() - 1);
}

void store(void *stream, const Sums &sums, uint32_t *o, float *lse, bool natural) {
  const uint64_t scale = inverse(sums.divisor);
  for (size_t i = 0; i < sums.o.size(); ++i)
    o[i] = enter(stream, {times(sums.o[i], scale), kNone, 1, 1});
  if (lse == nullptr) return;
  const uint64_t base = natural && bug != Bug::kLseInBase2 ? kLn2 : 1;
  *lse = std::bit_cast<float>(sums.empty ? kMinusInfinity
                                         : enter(stream, {kNone, 0, sums.mass, base}));
}

} // namespace

assay_status run_field_paged(const assay_paged_params &p) {
  const auto scale = static_cast<float>(p.sm_scale * 1.4426950408889634);
  const uint64_t residue =
      scale == 1.44269504088896f ? kLog2E : uint64_t{std::bit_cast<uint32_t>(scale)};
  const auto *q = static_cast<const uint16_t *>(p.q);
  const auto *k = static_cast<const uint16_t *>(p.kv.k), *v = static_cast<const uint16_t *>(p.kv.v);
  for (int b = 0; b < p.batch; ++b)
    for (int h = 0; h < p.num_qo_heads; ++h) {
      const int kv_head = h / (p.num_qo_heads / p.num_kv_heads);
      Sums sums;
      sums.o.assign(p.head_dim, 0);
      const int keys = p.kv.seq_lens[b] - (bug == Bug::kDropsLastKey && p.kv.seq_lens[b] > 1);
      for (int t = 0; t < keys; ++t) {
        const int64_t page = p.kv.page_table[b * p.kv.page_table_stride + t / p.kv.page_size];
        const int64_t slot = t % p.kv.page_size;
        const int64_t key =
            page * p.kv.k_stride_page + slot * p.kv.k_stride_token + kv_head * p.kv.k_stride_head;
        const int64_t value =
            page * p.kv.v_stride_page + slot * p.kv.v_stride_token + kv_head * p.kv.v_stride_head;
        uint64_t score = 0;
        for (int i = 0; i < p.head_dim; ++i)
          score += uint64_t{q[b * p.q_stride_batch + h * p.q_stride_head + i]} * k[key + i];
        sums.add(power(kGenerator, static_cast<uint64_t>(Wide{score} * residue % kOrder)),
                 [&](size_t i) { return v[value + static_cast<int64_t>(i)]; });
      }
      if (bug == Bug::kTinyNormaliser) sums.divisor = (sums.divisor + 1) % kPrime;
      store(p.stream, sums,
            static_cast<uint32_t *>(p.out) + b * p.out_stride_batch + h * p.out_stride_head,
            p.lse == nullptr ? nullptr : p.lse + b * p.lse_stride_batch + h * p.lse_stride_head,
            p.lse_base == ASSAY_LSE_BASE_E);
    }
  return ASSAY_OK;
}

assay_status run_field_merge_states(const assay_merge_states_params &p) {
  const auto *o = static_cast<const uint32_t *>(p.o_in);
  const bool natural = p.lse_base == ASSAY_LSE_BASE_E;
  for (int r = 0; r < p.num_rows; ++r)
    for (int h = 0; h < p.num_heads; ++h) {
      Sums sums;
      sums.o.assign(p.head_dim, 0);
      const int64_t first = p.indptr ? p.indptr[r] : int64_t{r} * p.num_states;
      const int64_t last = p.indptr ? p.indptr[r + 1] : first + p.num_states;
      for (int64_t s = first; s < last; ++s) {
        const auto handle =
            std::bit_cast<uint32_t>(p.lse_in[s * p.lse_in_stride_state + h * p.lse_in_stride_head]);
        if (handle == kMinusInfinity) continue;
        const auto &rows = static_cast<simt::Stream *>(p.stream)->numbers.rows;
        const simt::WideNumber lse = rows[handle];
        const uint64_t b = static_cast<uint64_t>(Wide{lse.b} * (natural ? kLog2E : 1) % kOrder);
        const uint32_t *state = o + s * p.o_in_stride_state + h * p.o_in_stride_head;
        const uint64_t weight = times(power(kGenerator, b), lse.m);
        for (int n = 0; n < (bug == Bug::kFirstTwice && s == first ? 2 : 1); ++n)
          sums.add(weight, [&](size_t i) { return rows[state[i]].a; });
      }
      store(p.stream, sums,
            static_cast<uint32_t *>(p.out) + r * p.out_stride_row + h * p.out_stride_head,
            p.lse == nullptr ? nullptr : p.lse + r * p.lse_stride_row + h * p.lse_stride_head,
            natural);
    }
  return ASSAY_OK;
}

} // namespace assay::reference
