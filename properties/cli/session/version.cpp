// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/session/version.h"

#include <algorithm>

#include <fmt/format.h>

#include "kernels/abi/kernel_table.h"
#include "properties/cli/session/session.h"

namespace assay {

std::string version_text(const assay_plugin &own, const std::string &commit) {
  std::string targets;
  for (const assay_target target : {ASSAY_TARGET_SIMT, ASSAY_TARGET_CUDA}) {
    const auto kernels = kernels_in(own);
    if (std::any_of(kernels.begin(), kernels.end(),
                    [&](const assay_kernel &kernel) { return kernel.target == target; }))
      targets += (targets.empty() ? "" : ", ") + std::string(target_name(target));
  }
  return fmt::format("assay {}\ncommit {}\ntargets {}\nABI {}.{}", ASSAY_VERSION, commit, targets,
                     ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR);
}

} // namespace assay
