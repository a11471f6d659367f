// SPDX-License-Identifier: Apache-2.0
// The C entry points. Compiled once per library, with ASSAY_WITH_SIMT and ASSAY_WITH_CUDA for the
// targets in it.
#include "kernels/api/launch_table.h"
#include "kernels/decode/choose.h"
#include "kernels/host/fail.h"

namespace assay {
namespace {

/// Params may be null or broken here, or name a target that the library lacks; building the call
/// reports that, whatever table it gets.
template <class Params>
const LaunchTable &table_for([[maybe_unused]] const Params *params) {
#if defined(ASSAY_WITH_SIMT) && defined(ASSAY_WITH_CUDA)
  const bool cuda = params != nullptr && params->target == ASSAY_TARGET_CUDA;
  return cuda ? n_cuda::launch_table() : n_simt::launch_table();
#elif defined(ASSAY_WITH_CUDA)
  return n_cuda::launch_table();
#else
  return n_simt::launch_table();
#endif
}

template <class Params>
assay_status write_size(assay_status (*size)(const Params *, uint64_t *), const Params *params,
                        uint64_t *bytes) {
  if (bytes == nullptr) return fail(ASSAY_INVALID_ARGUMENT, "bytes is null");
  return with_current_struct(params, [&](const Params *current) {
    ASSAY_RETURN_IF_ERROR(size(current, bytes));
    ASSAY_RETURN_IF_ERROR(check_device_code(current->target));
    return set_ok();
  });
}

} // namespace
} // namespace assay

using namespace assay;

extern "C" {

#define ASSAY_KERNEL_ROW(name, Kernel)                                                             \
  assay_status assay_##name(const Kernel::Params *params) {                                        \
    return with_current_struct(params, [](const Kernel::Params *current) {                         \
      return run_call<Kernel>(table_for(current).name, current);                                   \
    });                                                                                            \
  }                                                                                                \
  assay_status assay_##name##_supports(const Kernel::Params *params) {                             \
    return with_current_struct(params, [](const Kernel::Params *current) {                         \
      return supports_call<Kernel>(table_for(current).name, current);                              \
    });                                                                                            \
  }
#define ASSAY_RANKS_KERNEL(name, Kernel)
#include "kernels/api/kernels.def"

#define ASSAY_KERNEL_ROW(name, Kernel)
#define ASSAY_WORKSPACE_KERNEL(name, Kernel)                                                       \
  assay_status assay_##name##_workspace_size(const Kernel::Params *params, uint64_t *bytes) {      \
    return write_size(&Kernel::workspace_size, params, bytes);                                     \
  }
#include "kernels/api/kernels.def"

#define ASSAY_KERNEL_ROW(name, Kernel)
#define ASSAY_PLANNED_KERNEL(name, Kernel)                                                         \
  assay_status assay_##name##_plan(const Kernel::Params *params) {                                 \
    return with_current_struct(params, [](const Kernel::Params *current) {                         \
      return run_call<Kernel::Planner>(table_for(current).name##_plan, current);                   \
    });                                                                                            \
  }                                                                                                \
  assay_status assay_##name##_plan_size(const Kernel::Params *params, uint64_t *bytes) {           \
    return write_size(&Kernel::Planner::size, params, bytes);                                      \
  }
#include "kernels/api/kernels.def"

assay_status assay_tree_attention_plan_lengths(const assay_paged_params *params) {
  return with_current_struct(params, [](const assay_paged_params *current) {
    return run_call<TreeLengthsPlan>(table_for(current).tree_attention_plan, current);
  });
}

assay_status assay_exchange_states_window_size(const assay_exchange_params *params,
                                               uint64_t *bytes) {
  return write_size(&ExchangeStates::window_size, params, bytes);
}

assay_status assay_paged_attention_choose(const assay_paged_params *params, int64_t total_tokens,
                                          int32_t max_seq_len, assay_paged_choice *choice) {
  return with_current_struct(params, [&](const assay_paged_params *current) {
    ASSAY_RETURN_IF_ERROR(choose_version(current, total_tokens, max_seq_len, choice));
    ASSAY_RETURN_IF_ERROR(check_device_code(current->target));
    return set_ok();
  });
}

} // extern "C"
