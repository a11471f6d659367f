// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/target.h"
#include "kernels/abi/assay.h"

namespace assay::fuzz {

/// The entry points under test: the library's, but for what a control replaces.
struct AbiEntries {
  template <class Params>
  using Call = assay_status (*)(const Params *);
  template <class Params>
  using Size = assay_status (*)(const Params *, uint64_t *);

  Call<assay_paged_params> v1 = assay_paged_attention_v1;
  Call<assay_paged_params> v2 = assay_paged_attention_v2;
  Call<assay_paged_params> tree = assay_tree_attention;
  Call<assay_paged_params> tree_plan = assay_tree_attention_plan;
  Call<assay_paged_params> tree_lengths = assay_tree_attention_plan_lengths;
  Call<assay_cascade_params> cascade = assay_cascade_attention;
  Call<assay_merge_state_params> merge_state = assay_merge_state;
  Call<assay_merge_states_params> merge_states = assay_merge_states;
  Call<assay_paged_params> v2_plan = assay_paged_attention_v2_plan;
  Call<assay_paged_params> v1_supports = assay_paged_attention_v1_supports;
  Call<assay_paged_params> v2_supports = assay_paged_attention_v2_supports;
  Call<assay_paged_params> tree_supports = assay_tree_attention_supports;
  Call<assay_cascade_params> cascade_supports = assay_cascade_attention_supports;
  Call<assay_merge_state_params> merge_state_supports = assay_merge_state_supports;
  Call<assay_merge_states_params> merge_states_supports = assay_merge_states_supports;
  Size<assay_paged_params> v2_size = assay_paged_attention_v2_workspace_size;
  Size<assay_paged_params> v2_plan_size = assay_paged_attention_v2_plan_size;
  Size<assay_paged_params> tree_size = assay_tree_attention_workspace_size;
  Size<assay_paged_params> tree_plan_size = assay_tree_attention_plan_size;
  Size<assay_cascade_params> cascade_size = assay_cascade_attention_workspace_size;
  const char *(*last_error)() = assay_last_error;
};

/// First byte: an entry point. The rest: words of its parameters to overwrite in a right call.
/// Empty when the answer keeps to assay.h (assertions: fuzz_abi.cpp).
std::string check_abi_with(const AbiEntries &entries, Input input);
inline std::string check_abi(Input input) { return check_abi_with({}, input); }

} // namespace assay::fuzz
