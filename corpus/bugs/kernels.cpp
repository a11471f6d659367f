// SPDX-License-Identifier: Apache-2.0
#include "corpus/bugs/kernels.h"

#include <iterator>
#include <type_traits>

#include "corpus/bugs/bug.h"
#include "corpus/bugs/merge_state.h"
#include "corpus/bugs/merge_states.h"
#include "corpus/bugs/paged.h"
#include "corpus/bugs/staged.h"
#include "corpus/bugs/staged_pass.h"

namespace assay::bugs {

thread_local Bug active = Bug::none;

namespace {

/// Scalar fp32, glibc's functions: what the kernels are when they are right.
constexpr assay_arithmetic scalar(int tile, int splits) {
  assay_arithmetic a{};
  a.exponential = ASSAY_EXP_BASE2;
  a.sum_depth = kTile;
  a.exp2_rel_error = a.rcp_rel_error = 0x1p-23;
  a.log2_abs_error = a.tanh_abs_error = 0x1p-22;
  a.tile_tokens = tile;
  a.max_parallel_states = 1;
  a.max_splits = splits;
  a.merge_stages = splits > 0;
  return a;
}

assay_status no_field(const void *params) {
  // Every parameter struct begins with struct_size, target, dtype.
  return static_cast<const assay_merge_state_params *>(params)->dtype == ASSAY_FIELD61
             ? ASSAY_UNSUPPORTED
             : ASSAY_OK;
}

struct Paged {
  static constexpr const char *kRight = "right_paged";
  static constexpr assay_family kFamily = ASSAY_FAMILY_PAGED;
  static constexpr assay_arithmetic kArithmetic = scalar(kTile, 1 << 16);
  static constexpr auto supports = &paged_supports, run = &run_paged;
  static constexpr auto workspace = &paged_workspace;
};
struct Ragged : Paged {
  static constexpr const char *kRight = "right_ragged";
};
struct Sharded : Paged {
  static constexpr const char *kRight = "right_sharded";
};
struct Staged {
  static constexpr const char *kRight = "right_staged";
  static constexpr assay_family kFamily = ASSAY_FAMILY_PAGED;
  static constexpr assay_arithmetic kArithmetic = scalar(kStepKeys, kHalves);
  static constexpr auto supports = &staged_supports, run = &run_staged;
  static constexpr auto workspace = &staged_workspace;
};
struct MergeState {
  static constexpr const char *kRight = "right_merge_state";
  static constexpr assay_family kFamily = ASSAY_FAMILY_MERGE_STATE;
  static constexpr assay_arithmetic kArithmetic = scalar(0, 0);
  static constexpr auto supports = &no_field, run = &run_merge_state;
  static constexpr assay_status (*workspace)(const void *, uint64_t *) = nullptr;
};
struct MergeStates {
  static constexpr const char *kRight = "right_merge_states";
  static constexpr assay_family kFamily = ASSAY_FAMILY_MERGE_STATES;
  static constexpr assay_arithmetic kArithmetic = scalar(0, 0);
  static constexpr auto supports = &no_field, run = &run_merge_states;
  static constexpr assay_status (*workspace)(const void *, uint64_t *) = nullptr;
};

class Making {
public:
  explicit Making(Bug bug) { active = bug; }
  ~Making() { active = Bug::none; }
};

template <class Kernel, Bug kBug>
assay_status run(const void *params) {
  const Making making(kBug);
  return Kernel::run(params);
}
template <class Kernel, Bug kBug>
assay_status workspace(const void *params, uint64_t *bytes) {
  const Making making(kBug);
  return Kernel::workspace(params, bytes);
}
const char *last_error() { return ""; }

template <class Kernel, Bug kBug>
assay_kernel entry(const char *name) {
  assay_kernel k{};
  k.struct_size = sizeof k;
  k.name = name;
  k.family = Kernel::kFamily;
  k.target = ASSAY_TARGET_SIMT;
  k.determinism = ASSAY_DETERMINISM_RUN_TO_RUN;
  k.batch_invariance = ASSAY_BATCH_ALWAYS;
  k.nan_contract = ASSAY_NAN_VALUES | ASSAY_NAN_SCORES;
  k.arithmetic = Kernel::kArithmetic;
  k.supports = Kernel::supports;
  if constexpr (Kernel::workspace != nullptr) k.workspace_size = &workspace<Kernel, kBug>;
  if (std::is_same_v<Kernel, Ragged>) k.capabilities |= ASSAY_RAGGED_QUERIES;
  if (std::is_same_v<Kernel, Sharded>) k.capabilities |= ASSAY_SHARDS;
  k.run = &run<Kernel, kBug>;
  k.last_error = &last_error;
  return k;
}

const assay_kernel kKernels[] = {
    entry<Paged, Bug::none>(Paged::kRight),
    entry<Ragged, Bug::none>(Ragged::kRight),
    entry<Sharded, Bug::none>(Sharded::kRight),
    entry<Staged, Bug::none>(Staged::kRight),
    entry<MergeState, Bug::none>(MergeState::kRight),
    entry<MergeStates, Bug::none>(MergeStates::kRight),
#define ASSAY_BUG(name, Kernel) entry<Kernel, Bug::name>(#name),
#include "corpus/bugs/bugs.def"
#undef ASSAY_BUG
};

struct RightKernel {
  std::string_view wrong;
  const char *right;
};
constexpr RightKernel kRight[] = {
#define ASSAY_BUG(name, Kernel) {#name, Kernel::kRight},
#include "corpus/bugs/bugs.def"
#undef ASSAY_BUG
};

} // namespace

const assay_plugin &plugin() {
  static const assay_plugin kPlugin = {sizeof(assay_plugin),
                                       ASSAY_ABI_MAJOR,
                                       ASSAY_ABI_MINOR,
                                       "bugs",
                                       static_cast<int32_t>(std::size(kKernels)),
                                       kKernels};
  return kPlugin;
}

const assay_kernel *find_kernel(std::string_view name) {
  for (const assay_kernel &kernel : kKernels)
    if (name == kernel.name) return &kernel;
  return nullptr;
}

const assay_kernel *right_kernel(std::string_view wrong) {
  for (const RightKernel &row : kRight)
    if (row.wrong == wrong) return find_kernel(row.right);
  return nullptr;
}

} // namespace assay::bugs
