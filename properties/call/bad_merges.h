// SPDX-License-Identifier: Apache-2.0
// Merges that assay.h forbids: for_each_bad_call of those families.
#pragma once

#include "properties/call/params.h"
#include "properties/call/spoiler.h"

namespace assay {

void spoil_merge_state(const Spoiler &spoil, assay_merge_state_params &p);
void spoil_merge_states(const Spoiler &spoil, assay_merge_states_params &p);

} // namespace assay
