// SPDX-License-Identifier: Apache-2.0
// What a library can run, apart from running it.
#pragma once

#include "kernels/host/status.h"

namespace assay {

/// Starts the kernels of a checked call.
template <class Call>
using Launch = assay_status (*)(const Call &call, void *stream);

/// Finds what starts a checked call. Fails, and leaves `launch` alone, where no instantiation
/// serves it.
template <class Call>
using Find = assay_status (*)(const Call &call, Launch<Call> &launch);

} // namespace assay
