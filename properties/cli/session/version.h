// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "kernels/abi/plugin.h"

namespace assay {

/// The commit of `assay`, the only program that is linked with it: a commit costs one link.
extern const char *const kCommit;

/// What `assay --version` prints: version, commit, the targets of `own` and the ABI of plugins.
std::string version_text(const assay_plugin &own, const std::string &commit);

} // namespace assay
