// SPDX-License-Identifier: Apache-2.0
// Property: a kernel computes in the order of keys that it declares. Catches: plans of host and
// device that differ, tiles, splits and states that are not the declared ones, though every key
// counts once. Within bound.
//
// Inputs. A few keys of each row are high; all others are low, 2^-27 of their weight, which fp16
// rounds to nothing. So a low key counts where no high key stands before it, or in its tile, under
// the same running maximum, and else it vanishes. Values are 0 at high keys and one-hot at low
// ones: each component of O counts the low keys that survived. That number is right in one order of
// the keys, and off by whole keys in another: T1 tells orders apart where a state ends elsewhere.
// What rounds weights to another format than fp16, or to none, is judged all the same.
#include <algorithm>
#include <cmath>

#include "properties/call/element.h"
#include "properties/call/materialise.h"
#include "properties/case/hash.h"
#include "properties/invariants/invariants.h"
#include "properties/relate/budget.h"
#include "properties/relate/outcome.h"

namespace assay {
namespace {

constexpr double kGap = 27; ///< of base-2 logits: fp16 ends at 2^-24, and rounds 2^-25 to 0
constexpr double kLog2E = 1.44269504088896340736;

/// Equal components, so that a key of -1 has a logit of -kGap.
void fill_queries(Tensors &t) {
  const Problem &p = t.problem;
  for (int row = 0; row < t.rows(); ++row)
    for (int head = 0; head < t.heads(); ++head) {
      const double unit =
          p.head_dim * double(sm_scale(p)) * kLog2E * t.key_scale(head / p.group_size);
      const auto q = static_cast<float>(kGap / unit);
      // A scale may be such that no query has that gap; then weights are what they are.
      const uint32_t bits = to_bits(p.dtype, q > 0x1p-13f && q < 0x1p15f ? q : 1.0f);
      for (int i = 0; i < p.head_dim; ++i)
        t.set_bits(t.q, row, head, i, bits);
    }
}

void fill_key(Tensors &t, int cache, int row, int token, bool high) {
  const Problem &p = t.problem;
  const Dtype dtype = kv_dtype(p);
  const uint32_t zero = 0, score = high ? zero : to_bits(dtype, -1.0f);
  const uint32_t value = to_bits(dtype, 256.0f); // also of e4m3, whose largest is 448
  for (int head = 0; head < p.num_kv_heads; ++head)
    for (int i = 0; i < p.head_dim; ++i) {
      t.set_key(cache, row, token, head, i, score);
      t.set_val(cache, row, token, head, i, !high && token % p.head_dim == i ? value : zero);
    }
}

/// Where requests share pages the last key written counts, so the high ones follow the others.
Tensors inputs(const Problem &p) {
  Tensors t = materialise(p);
  fill_queries(t);
  const auto for_each_row = [&](auto body) {
    for (int c = 0; c < static_cast<int>(t.caches.size()); ++c)
      for (int row = 0; row < t.caches[c].rows; ++row)
        if (const int len = t.caches[c].len[row]; len > 0) body(c, row, len);
  };
  for_each_row([&](int cache, int row, int len) {
    for (int token = 0; token < len; ++token)
      fill_key(t, cache, row, token, false);
  });
  for_each_row([&](int cache, int row, int len) {
    const auto draw = [&](int what) {
      return hash_values(0x02de2u, p.q.seed, p.k.seed, cache, row, what);
    };
    // One shows where its own state ends; many, where each of several begins.
    const int many = draw(-2) % 2 == 0 ? 0 : len / 96;
    for (int i = 0; i < 1 + many + static_cast<int>(draw(-1) % 3); ++i)
      fill_key(t, cache, row, static_cast<int>(draw(i) % len), true);
  });
  return t;
}

} // namespace

CheckResult declared_order(const Problem &p, Sut &sut) {
  Problem plain = p;
  plain.logits_soft_cap = Softcap::kNone;
  plain.alibi = Alibi::kNone;
  plain.sinks = Sinks::kNone;
  if (!is_fp8(plain)) plain.dtype = Dtype::kFp16;
  Outcome run = run_tensors(inputs(plain), sut);
  // A kernel of one type is judged in that.
  if (run.check.unsupported && plain.dtype != p.dtype) {
    plain.dtype = p.dtype;
    run = run_tensors(inputs(plain), sut);
  }
  if (!run.ok()) return run.check;
  return inside_budget(run, sut);
}

} // namespace assay
