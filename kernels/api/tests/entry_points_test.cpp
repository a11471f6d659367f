// SPDX-License-Identifier: Apache-2.0
// Every entry point of attention asked about every forbidden value: each refuses what it looks at,
// as assay.h says, and takes what it does not. Merges have no entry points beside `supports` and
// the call, which share all checks.
#include "kernels/abi/plugin.h"
#include "kernels/api/launch_table.h"
#include "kernels/decode/tests/paged_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace assay {
namespace {

/// What an entry point looks at. A forbidden value belongs to one of them.
enum Part : unsigned {
  kShape = 1,       // sizes, types and options
  kSplits = 2,      // num_splits
  kCacheSizes = 4,  // sizes of a paged cache
  kTiles = 8,       // that a plan of these sizes may have
  kLengths = 16,    // where seq_lens lies
  kCache = 32,      // where the rest of the cache lies, and its strides
  kTensors = 64,    // q, o, lse, and arrays of features
  kWorkspace = 128, // where it lies, and its size
  kPlan = 256       // where it lies, and its size
};
constexpr unsigned kSizes = kShape | kSplits | kCacheSizes | kTiles;

enum class Kind { kAsks, kRuns, kPlans };

template <class Params>
struct Entry {
  std::string name;
  unsigned looks_at;
  assay_status (*ask)(const Params *);
  Kind kind;
  /// num_splits is that of shared keys, of which there may be none.
  bool splits_shared_keys_alone() const { return name.starts_with("tree_attention"); }
};

template <class Params, auto kSize>
assay_status size_of(const Params *p) {
  uint64_t bytes = 0;
  return kSize(p, &bytes);
}
assay_status choose(const assay_paged_params *p) {
  assay_paged_choice choice;
  return assay_paged_attention_choose(p, p != nullptr && p->batch > 0 ? 1 : 0, 1, &choice);
}

/// The entry points of kernels.def that take such params.
template <class Params>
std::vector<Entry<Params>> entry_points() {
  std::vector<Entry<Params>> out;
  const auto add = [&](std::string name, unsigned looks_at, auto ask, Kind kind) {
    if constexpr (std::is_convertible_v<decltype(ask), assay_status (*)(const Params *)>)
      out.push_back({std::move(name), looks_at, ask, kind});
  };
  using enum Kind;
  constexpr bool kPaged = std::is_same_v<Params, assay_paged_params>;
  constexpr unsigned kUnsplit = kShape | kCacheSizes | kLengths | kCache | kTensors;
  // What a level of a cascade looks like decides its schedule, and with it every size.
  constexpr unsigned kAll = ~0u, kSizesOf = kPaged ? kSizes : kSizes | kLengths | kCache;
#define ASSAY_KERNEL_ROW(name, Kernel)                                                             \
  add(#name "_supports", kUnsplit, &assay_##name##_supports, kAsks);                               \
  add(#name, kUnsplit, &assay_##name, kRuns);
#define ASSAY_RANKS_KERNEL(name, Kernel)
#define ASSAY_WORKSPACE_KERNEL(name, Kernel)                                                       \
  add(#name "_supports", kAll, &assay_##name##_supports, kAsks);                                   \
  add(#name, kAll, &assay_##name, kRuns);                                                          \
  add(#name "_workspace_size", kSizesOf, &size_of<Kernel::Params, &assay_##name##_workspace_size>, \
      kAsks);
#define ASSAY_PLANNED_KERNEL(name, Kernel)                                                         \
  ASSAY_WORKSPACE_KERNEL(name, Kernel)                                                             \
  add(#name "_plan_size", kSizes, &size_of<Kernel::Params, &assay_##name##_plan_size>, kAsks);     \
  add(#name "_plan", kSizes | kLengths | kPlan | (std::is_same_v<Kernel, Tree> ? kCache : 0u),     \
      &assay_##name##_plan, kPlans);
#include "kernels/api/kernels.def"
  add("paged_attention_choose", kShape | kSplits, &choose, kAsks);
  add("tree_attention_plan_lengths", kSizes | kLengths | kPlan, &assay_tree_attention_plan_lengths,
      kPlans);
  return out;
}

template <class Params>
struct Forbidden {
  const char *what;
  Part part;
  void (*spoil)(Params &);
};

template <class T>
T *moved(T *pointer, int64_t bytes) {
  return reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(pointer) + bytes);
}

/// Asks every entry point about every forbidden value. `make` returns a right call.
template <class Case, class Params, class Make, size_t N>
void expect_refused_by_all(Make make, const Forbidden<Params> (&forbidden)[N]) {
  for (const Entry<Params> &entry : entry_points<Params>()) {
    const bool plans = entry.kind == Kind::kPlans;
    const std::unique_ptr<Case> right = make(plans);
    EXPECT_EQ(entry.ask(&right->p), ASSAY_OK) << entry.name << ": " << assay_last_error();
    EXPECT_EQ(entry.ask(nullptr), ASSAY_INVALID_ARGUMENT) << entry.name;
    for (const Forbidden<Params> &bad : forbidden) {
      const std::unique_ptr<Case> call = make(plans);
      bad.spoil(call->p);
      const bool looks = entry.looks_at & bad.part;
      const assay_status status = entry.ask(&call->p);
      EXPECT_EQ(status != ASSAY_OK, looks)
          << entry.name << " and " << bad.what << ": " << assay_last_error();
      EXPECT_NE(status, ASSAY_HAZARD) << entry.name << " and " << bad.what;
    }
  }
}

/// A case whose call plans itself. A planner gets room for the plan of either kernel.
struct PlannedCase : PagedCase {
  alignas(16) char plan[1 << 17];
  explicit PlannedCase(bool plans) {
    p.plan_bytes = sizeof plan;
    if (plans) p.plan = plan;
  }
};

using Paged = assay_paged_params;
constexpr float kNan = NAN, kInf = INFINITY;
constexpr Forbidden<Paged> kPagedForbidden[] = {
    {"struct_size 0", kShape, [](Paged &p) { p.struct_size = 0; }},
    {"target 2", kShape, [](Paged &p) { p.target = 2; }},
    {"dtype fp32", kShape, [](Paged &p) { p.dtype = p.kv_dtype = ASSAY_FP32; }},
    {"dtype -1", kShape, [](Paged &p) { p.dtype = p.kv_dtype = -1; }},
    {"kv_dtype fp32", kShape, [](Paged &p) { p.kv_dtype = ASSAY_FP32; }},
    {"kv_dtype fp16 with dtype bf16", kShape, [](Paged &p) { p.kv_dtype = ASSAY_FP16; }},
    {"field61 without a stream", kShape, [](Paged &p) { p.dtype = p.kv_dtype = ASSAY_FIELD61; }},
    {"lse_base 2", kShape, [](Paged &p) { p.lse_base = 2; }},
    {"batch -1", kShape, [](Paged &p) { p.batch = p.kv.rows = -1; }},
    {"batch 2^24 + 1", kShape, [](Paged &p) { p.batch = p.kv.rows = (1 << 24) + 1; }},
    {"q_len 0", kShape, [](Paged &p) { p.q_len = 0; }},
    {"q_len 9", kShape, [](Paged &p) { p.q_len = ASSAY_MAX_Q_LEN + 1; }},
    {"num_qo_heads 0", kShape, [](Paged &p) { p.num_qo_heads = 0; }},
    {"num_qo_heads 2^20 + 1", kShape, [](Paged &p) { p.num_qo_heads = (1 << 20) + 1; }},
    {"num_kv_heads 0", kShape, [](Paged &p) { p.num_kv_heads = 0; }},
    {"num_kv_heads 3 of 4", kShape, [](Paged &p) { p.num_kv_heads = 3; }},
    {"head_dim 0", kShape, [](Paged &p) { p.head_dim = 0; }},
    {"head_dim 32", kShape, [](Paged &p) { p.head_dim = 32; }},
    {"head_dim 192", kShape, [](Paged &p) { p.head_dim = 192; }},
    {"sm_scale 0", kShape, [](Paged &p) { p.sm_scale = 0; }},
    {"sm_scale NaN", kShape, [](Paged &p) { p.sm_scale = kNan; }},
    {"logits_soft_cap -1", kShape, [](Paged &p) { p.logits_soft_cap = -1; }},
    {"logits_soft_cap inf", kShape, [](Paged &p) { p.logits_soft_cap = kInf; }},
    {"window_left -2", kShape, [](Paged &p) { p.window_left = -2; }},
    {"window_left 2^30", kShape, [](Paged &p) { p.window_left = 1 << 30; }},
    {"enable_pdl 2", kShape, [](Paged &p) { p.enable_pdl = 2; }},
    {"even_lengths -1", kShape, [](Paged &p) { p.even_lengths = -1; }},
    {"k_scale_stride 2", kShape, [](Paged &p) { p.k_scale_stride = 2; }},
    {"v_scale_stride -1", kShape, [](Paged &p) { p.v_scale_stride = -1; }},
    {"k_scale without fp8", kShape, [](Paged &p) { p.k_scale = p.lse; }},
    {"v_scale without fp8", kShape, [](Paged &p) { p.v_scale = p.lse; }},
    {"2^31 head tiles", kShape,
     [](Paged &p) {
       p.batch = p.kv.rows = 1 << 24;
       p.num_qo_heads = p.num_kv_heads = 128;
     }},
    {"num_splits -1", kSplits, [](Paged &p) { p.num_splits = -1; }},
    {"num_splits 70000", kSplits, [](Paged &p) { p.num_splits = 70'000; }},
    {"kv.rows 2 of batch 1", kCacheSizes, [](Paged &p) { p.kv.rows = 2; }},
    {"kv.rows -1", kCacheSizes, [](Paged &p) { p.kv.rows = -1; }},
    {"batch 0 of kv.rows 1", kCacheSizes, [](Paged &p) { p.batch = 0; }},
    {"kv.max_pages -1", kCacheSizes, [](Paged &p) { p.kv.max_pages = -1; }},
    {"kv.page_size 0", kCacheSizes, [](Paged &p) { p.kv.page_size = 0; }},
    {"kv.page_size 2^30 + 1", kCacheSizes, [](Paged &p) { p.kv.page_size = (1 << 30) + 1; }},
    {"2^31 tokens a row", kCacheSizes, [](Paged &p) { p.kv.page_size = 1 << 30; }},
    {"kv.reserved 1", kCacheSizes, [](Paged &p) { p.kv.reserved[0] = 1; }},
    {"kv.seq_lens null", kLengths, [](Paged &p) { p.kv.seq_lens = nullptr; }},
    {"kv.seq_lens odd", kLengths, [](Paged &p) { p.kv.seq_lens = moved(p.kv.seq_lens, 2); }},
    {"kv.k null", kCache, [](Paged &p) { p.kv.k = nullptr; }},
    {"kv.v odd", kCache, [](Paged &p) { p.kv.v = moved(p.kv.v, 8); }},
    {"kv.page_table null", kCache, [](Paged &p) { p.kv.page_table = nullptr; }},
    {"kv.k_stride_page 4", kCache, [](Paged &p) { p.kv.k_stride_page = 4; }},
    {"kv.v_stride_token 2^31", kCache, [](Paged &p) { p.kv.v_stride_token = int64_t{1} << 31; }},
    {"kv.v_stride_head -8", kCache, [](Paged &p) { p.kv.v_stride_head = -8; }},
    {"kv.page_table_stride 1", kCache, [](Paged &p) { p.kv.page_table_stride = 1; }},
    {"fp8 with kv.k_stride_page 8", kCache,
     [](Paged &p) {
       p.kv_dtype = ASSAY_E4M3;
       p.kv.k_stride_page = 8;
     }},
    {"q null", kTensors, [](Paged &p) { p.q = nullptr; }},
    {"o odd", kTensors, [](Paged &p) { p.out = moved(static_cast<char *>(p.out), 8); }},
    {"out_stride_head 8", kTensors, [](Paged &p) { p.out_stride_head = 8; }},
    {"lse odd", kTensors, [](Paged &p) { p.lse = moved(p.lse, 2); }},
    {"q_stride_head 4", kTensors, [](Paged &p) { p.q_stride_head = 4; }},
    {"sinks odd", kTensors, [](Paged &p) { p.sinks = moved(p.lse, 2); }},
    {"workspace odd", kWorkspace,
     [](Paged &p) { p.workspace = moved(static_cast<char *>(p.workspace), 8); }},
    {"workspace_bytes 16", kWorkspace, [](Paged &p) { p.workspace_bytes = 16; }},
    {"plan odd", kPlan, [](Paged &p) { p.plan = moved(static_cast<char *>(p.out), 8); }},
    {"plan_bytes 4", kPlan,
     [](Paged &p) {
       p.plan = p.out;
       p.plan_bytes = 4;
     }},
};

TEST(EntryPoints, refuse_every_paged_call_that_is_forbidden) {
  expect_refused_by_all<PlannedCase>(
      [](bool plans) { return std::make_unique<PlannedCase>(plans); }, kPagedForbidden);
}

/// More blocks or tiles than there can be, of calls too large to be made: nothing runs them.
TEST(EntryPoints, that_ask_only_refuse_a_call_that_is_too_large) {
  const PlannedCase call(true);
  const auto too_large = [&](const char *what, Part part, const Paged &p) {
    for (const Entry<Paged> &entry : entry_points<Paged>())
      if (entry.kind == Kind::kAsks && (part != kSplits || !entry.splits_shared_keys_alone()))
        EXPECT_EQ(entry.ask(&p), entry.looks_at & part ? ASSAY_CAPACITY_EXCEEDED : ASSAY_OK)
            << entry.name << " and " << what << ": " << assay_last_error();
  };
  Paged p = call.p;
  p.workspace_bytes = p.plan_bytes = ~uint64_t{0};
  p.batch = p.kv.rows = 1 << 24;
  p.num_splits = 0;
  p.kv.page_size = 1 << 29;
  too_large("2^54 tokens", kTiles, p);
  p.kv.page_size = 16;
  p.num_splits = 128;
  too_large("2^31 splits", kSplits, p);
}

struct CascadeCase : PagedCase {
  int32_t indptr[2] = {0, 1};
  assay_cascade_level levels[1] = {};
  assay_cascade_params p = {};
  CascadeCase() {
    const assay_paged_params &paged = PagedCase::p;
    levels[0] = {paged.kv, indptr, {}};
    p.struct_size = sizeof p;
    p.dtype = ASSAY_BF16;
    p.batch = p.num_kv_heads = 1;
    p.num_qo_heads = 4;
    p.head_dim = 64;
    p.sm_scale = 0.125f;
    p.num_levels = 1;
    p.q = q;
    p.out = o;
    p.lse = lse;
    p.q_stride_batch = p.out_stride_batch = 256;
    p.q_stride_head = p.out_stride_head = 64;
    p.lse_stride_batch = 4;
    p.lse_stride_head = 1;
    p.levels = levels;
    p.workspace = workspace;
    p.workspace_bytes = sizeof workspace;
  }
};

using Cascades = assay_cascade_params;
assay_paged_kv &kv_of(Cascades &p) { return const_cast<assay_cascade_level *>(p.levels)->kv; }
constexpr Forbidden<Cascades> kCascadeForbidden[] = {
    {"struct_size 0", kShape, [](Cascades &p) { p.struct_size = 0; }},
    {"target -1", kShape, [](Cascades &p) { p.target = -1; }},
    {"dtype e4m3", kShape, [](Cascades &p) { p.dtype = ASSAY_E4M3; }},
    {"field61 without a stream", kShape, [](Cascades &p) { p.dtype = ASSAY_FIELD61; }},
    {"lse_base -1", kShape, [](Cascades &p) { p.lse_base = -1; }},
    {"batch -1", kShape, [](Cascades &p) { p.batch = -1; }},
    {"num_kv_heads 3 of 4", kShape, [](Cascades &p) { p.num_kv_heads = 3; }},
    {"head_dim 192", kShape, [](Cascades &p) { p.head_dim = 192; }},
    {"sm_scale inf", kShape, [](Cascades &p) { p.sm_scale = kInf; }},
    {"num_levels 0", kShape, [](Cascades &p) { p.num_levels = 0; }},
    {"num_levels 9", kShape, [](Cascades &p) { p.num_levels = ASSAY_MAX_CASCADE_LEVELS + 1; }},
    {"num_splits -1", kSplits, [](Cascades &p) { p.num_splits = -1; }},
    {"num_splits 4097", kSplits, [](Cascades &p) { p.num_splits = 4097; }},
    {"reserved 1", kShape, [](Cascades &p) { p.reserved = 1; }},
    {"levels null", kCache, [](Cascades &p) { p.levels = nullptr; }},
    {"level reserved 1", kCacheSizes,
     [](Cascades &p) { const_cast<assay_cascade_level *>(p.levels)->reserved[2] = 1; }},
    {"segment_indptr null", kCache,
     [](Cascades &p) { const_cast<assay_cascade_level *>(p.levels)->segment_indptr = nullptr; }},
    {"kv.rows -1", kCacheSizes, [](Cascades &p) { kv_of(p).rows = -1; }},
    {"kv.max_pages -1", kCacheSizes, [](Cascades &p) { kv_of(p).max_pages = -1; }},
    {"kv.page_size 0", kCacheSizes, [](Cascades &p) { kv_of(p).page_size = 0; }},
    {"kv.reserved 1", kCacheSizes, [](Cascades &p) { kv_of(p).reserved[8] = 1; }},
    {"kv.seq_lens null", kLengths, [](Cascades &p) { kv_of(p).seq_lens = nullptr; }},
    {"kv.v null", kCache, [](Cascades &p) { kv_of(p).v = nullptr; }},
    {"kv.k_stride_token 4", kCache, [](Cascades &p) { kv_of(p).k_stride_token = 4; }},
    {"q odd", kTensors, [](Cascades &p) { p.q = moved(static_cast<const char *>(p.q), 8); }},
    {"o null", kTensors, [](Cascades &p) { p.out = nullptr; }},
    {"out_stride_head 8", kTensors, [](Cascades &p) { p.out_stride_head = 8; }},
    {"workspace null", kWorkspace, [](Cascades &p) { p.workspace = nullptr; }},
    {"workspace_bytes 16", kWorkspace, [](Cascades &p) { p.workspace_bytes = 16; }},
};

TEST(EntryPoints, refuse_every_cascade_that_is_forbidden) {
  expect_refused_by_all<CascadeCase>([](bool) { return std::make_unique<CascadeCase>(); },
                                     kCascadeForbidden);
}

} // namespace
} // namespace assay
