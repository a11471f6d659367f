// SPDX-License-Identifier: Apache-2.0
// Calls as large as assay.h allows, and one larger: too large for any memory, to be asked about.
#pragma once

#include "properties/call/bad_calls.h"
#include "properties/call/oversized_call.h"

namespace assay {

/// Puts sizes at a limit of assay.h into `right`, one limit after another, calls `ask`, and mends
/// it again. Where several fields have a limit together the call one beyond it follows, with
/// `allowed` false; beyond that of one field is for_each_bad_call. The workspace is to be as large
/// as a call can say.
void for_each_limit(AbiParams &right, const CallTraits &traits, const AskLimit &ask);

} // namespace assay
