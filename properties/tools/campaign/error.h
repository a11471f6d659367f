// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace assay::campaign {

/// Ends a campaign, with one line and an exit code (properties/cli/session/streams.h).
struct CampaignError : std::runtime_error {
  CampaignError(int code, const std::string &line) : std::runtime_error(line), code(code) {}
  int code;
};

} // namespace assay::campaign
