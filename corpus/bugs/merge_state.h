// SPDX-License-Identifier: Apache-2.0
// A merge of two states: a thread eight components, whole heads a block.
#pragma once

#include "kernels/abi/plugin.h"

namespace assay::bugs {

assay_status run_merge_state(const void *params);

} // namespace assay::bugs
