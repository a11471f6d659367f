// SPDX-License-Identifier: Apache-2.0
// Merges that assay.h forbids: for_each_bad_call of those families.
#pragma once

#include "properties/call/call_corruptor.h"
#include "properties/call/params.h"

namespace assay {

void corrupt_merge_state(const CallCorruptor &corrupt, assay_merge_state_params &p);
void corrupt_merge_states(const CallCorruptor &corrupt, assay_merge_states_params &p);

} // namespace assay
