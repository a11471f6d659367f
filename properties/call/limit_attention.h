// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "properties/call/bad_calls.h"
#include "properties/call/oversized_call.h"

namespace assay {

/// for_each_limit (limit_calls.h) of one family.
void paged_limits(AbiParams &params, const CallTraits &traits, const AskLimit &ask);
void cascade_limits(AbiParams &params, const CallTraits &traits, const AskLimit &ask);

} // namespace assay
