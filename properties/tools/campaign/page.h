// SPDX-License-Identifier: Apache-2.0
// The report of a campaign, as data and as one page for people.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "properties/tools/campaign/campaign.h"

namespace assay::campaign {

/// {"complete", "exit", "seconds", "sessions", "tasks": [...], "findings": [...], "residual":
/// {...}}. exit: 1 with a finding, 4 where a task did no work, else 0.
nlohmann::json report_of(const Options &options, const std::vector<std::string> &tasks,
                         const Totals &totals);

/// One self-contained page: verdict, a plot of features over time for each task, findings.
std::string page(const nlohmann::json &report);

/// FOLDER/report.json and report.html, each whole or not at all.
void write_report(const std::string &folder, const nlohmann::json &report);

} // namespace assay::campaign
