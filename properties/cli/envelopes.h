// SPDX-License-Identifier: Apache-2.0
// What of all cases a check of narrow kernels covers, and what it does not.
#pragma once

#include "properties/cli/session.h"

namespace assay {

using Envelopes = std::map<const assay_kernel *, Envelope>;

/// Of the kernels of a plugin as they answer, cut to --only; of ours, which take everything, what
/// --only leaves. CliError for fields and values that none of them knows, or that one refuses.
Envelopes envelopes_of(const Session &session, const std::vector<const assay_kernel *> &kernels);

/// Important classes that no property met because they lie outside the kernel's envelope.
std::vector<std::string> not_covered(const RunSummary &summary, const assay_kernel *kernel);

/// What a kernel takes and why not more, a line a field.
std::vector<std::string> in_words(const assay_kernel &kernel, const Envelope &envelope);
nlohmann::json to_json(const assay_kernel &kernel, const Envelope &envelope);

} // namespace assay
