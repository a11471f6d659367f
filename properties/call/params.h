// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/abi/plugin.h"
#include "properties/call/tensors.h"

namespace assay {

/// The ABI structs of a call whose buffer i lies at addresses[i].
/// Move-only: the cascade struct points into `levels`.
struct AbiParams {
  AbiParams() = default;
  AbiParams(AbiParams &&) = default;
  AbiParams &operator=(AbiParams &&) = default;
  Family family = Family::kPaged;
  assay_paged_params paged{};
  assay_cascade_params cascade{};
  std::vector<assay_cascade_level> levels;
  assay_merge_state_params merge_state{};
  assay_merge_states_params merge_states{};
  const void *get() const;
  void set_workspace(void *workspace, uint64_t bytes);
  void set_plan(void *plan, uint64_t bytes); ///< paged
};
/// `addresses` may hold nulls (workspace queries read shapes only).
AbiParams make_params(const Tensors &t, const std::vector<void *> &addresses, assay_target target,
                      void *stream);

/// Where token 0 of q, o or lse lies, of which `address` is the first that there is: in front of it
/// where a ragged call begins with a later one. Null stays null.
const void *token_0(const Tensors &t, const View &view, const void *address);

/// Addresses of the host buffers themselves.
std::vector<void *> host_addresses(Tensors &t);

/// A call to look at, not to run: inputs in the host buffers themselves, no outputs and no scratch.
AbiParams input_params(const Tensors &t);

} // namespace assay
