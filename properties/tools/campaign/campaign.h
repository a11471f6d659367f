// SPDX-License-Identifier: Apache-2.0
// Hours of looking for what nobody has thought of: fuzz targets and ever new draws of the
// properties, side by side.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "properties/tools/campaign/totals.h"

namespace assay::campaign {

struct Options {
  std::string program; ///< assay, for its draws
  std::string version;
  std::string dir;                  ///< everything that the campaign keeps
  std::vector<std::string> fuzzers; ///< folders of fuzz_* programs, taken in turn
  std::string seeds;                ///< folder of a folder of inputs for each target
  std::vector<std::string> source;  ///< --plugin LIB and the like, for check
  std::string library;              ///< whose kernels check draws for; empty: assay's own
  std::string only;                 ///< one target alone, without check; or empty
  double seconds = 8 * 3600, slice = 300;
  int jobs = 1;
  uint64_t seed = 1;
};

/// What runs now, for people.
struct Running {
  std::string task;
  double seconds;
};

struct Progress {
  /// A few times a second, with what was done and what runs.
  std::function<void(const Totals &, const std::vector<Running> &, double elapsed)> status;
  std::function<void(const std::string &)> say; ///< a line that stays
};

/// Runs until the time is over or `stop` is set, then prunes the corpora and writes
/// FOLDER/report.html and report.json. Returns that document, with "exit". CampaignError (error.h)
/// where it cannot go on.
nlohmann::json run_campaign(const Options &options, const Progress &progress,
                            const std::atomic<bool> &stop);

/// The tasks of such a document again.
Totals totals_of(const nlohmann::json &report);

} // namespace assay::campaign
