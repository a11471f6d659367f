// SPDX-License-Identifier: Apache-2.0
// Which cases a check of narrow kernels covers, and which it does not.
#pragma once

#include "properties/cli/session/session.h"

namespace assay {

using Envelopes = std::map<const assay_kernel *, Envelope>;

/// The envelopes of a plugin's kernels as they answer, cut to what --only and --assume say. Our
/// kernels take everything, so that theirs are what those leave. CliError for fields and values
/// that none of them knows, or that one refuses.
Envelopes envelopes_of(const Session &session, const std::vector<const assay_kernel *> &kernels,
                       const std::string &only = "");

/// Important classes that no property met because they lie outside the kernel's envelope.
std::vector<std::string> not_covered(const RunSummary &summary, const assay_kernel *kernel);

/// What a kernel takes and why not more, a line a field.
std::vector<std::string> in_words(const assay_kernel &kernel, const Envelope &envelope);
nlohmann::json to_json(const assay_kernel &kernel, const Envelope &envelope);

} // namespace assay
