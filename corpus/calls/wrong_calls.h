// SPDX-License-Identifier: Apache-2.0
// How a wrong call is made of a right kernel, and the wrong calls by what they have in common.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "corpus/calls/kernels.h"

namespace assay::wrong_calls {

/// Offsets and strides (layout.cpp), what earlier calls left behind (memory.cpp), right calls whose
/// declared order of keys is another (orders.cpp), and sizes (sizes.cpp).
std::vector<assay_kernel> wrong_layouts(), wrong_memories(), wrong_orders(), wrong_sizes();

/// A right kernel that takes the parameters as `change` leaves them: change(p), or change(p, run)
/// where it calls the kernel itself. It has no captures.
template <class Params, class Change>
assay_kernel called(const char *name, const char *right, Change) {
  static const auto run = own_kernel(right).run;
  assay_kernel kernel = own_kernel(right);
  kernel.name = name;
  kernel.run = [](const void *params) -> assay_status {
    if (params == nullptr) return ASSAY_INVALID_ARGUMENT;
    Params p = *static_cast<const Params *>(params);
    if constexpr (std::is_invocable_v<Change, Params &>) {
      Change{}(p);
      return run(&p);
    } else {
      return Change{}(p, run);
    }
  };
  return kernel;
}
template <class Change>
assay_kernel paged(const char *name, const char *right, Change change) {
  return called<assay_paged_params>(name, right, change);
}
template <class Change>
assay_kernel cascade(const char *name, Change change) {
  return called<assay_cascade_params>(name, "cascade_attention", change);
}
template <class Change>
assay_kernel merge_states(const char *name, Change change) {
  return called<assay_merge_states_params>(name, "merge_states", change);
}

} // namespace assay::wrong_calls
