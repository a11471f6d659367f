// SPDX-License-Identifier: Apache-2.0
// The rows of a call of the ABI. The page walk here is the oracle's own.
#pragma once

#include "kernels/abi/plugin.h"
#include "oracle/rows/memory.h"
#include "oracle/rows/rows.h"

namespace assay::oracle {

/**
 * Reads lengths, page tables, offsets and the small arrays of heads through `memory`; outputs,
 * workspace and plan are not looked at. Throws std::invalid_argument on heads that do not divide,
 * and on a length that its page table cannot hold.
 */
CallRows rows_of(const assay_paged_params &params, const Memory &memory = {});
/** `params.levels` itself is in this process. Levels in order: keys of level l before those of l
 * + 1. */
CallRows rows_of(const assay_cascade_params &params, const Memory &memory = {});
CallRows rows_of(const assay_merge_state_params &params, const Memory &memory = {});
CallRows rows_of(const assay_merge_states_params &params, const Memory &memory = {});
/** `params` is what kernels of the family take. */
CallRows rows_of(assay_family family, const void *params, const Memory &memory = {});

} // namespace assay::oracle
