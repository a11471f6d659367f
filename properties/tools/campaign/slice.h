// SPDX-License-Identifier: Apache-2.0
// One task for some minutes, in a process of its own.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "properties/tools/campaign/campaign.h"

namespace assay::campaign {

inline constexpr const char *kCheck = "check"; ///< the task that draws; others are fuzz targets

/// Names of fuzz_* programs in any of the folders, sorted.
std::vector<std::string> fuzz_targets(const std::vector<std::string> &folders);

/// Runs a slice of `seconds`, which may take longer but not longer than `most`; the fields of its
/// line in the journal (totals.h), without "end". What it finds is in FOLDER/findings when it
/// returns.
nlohmann::json run_slice(const Options &options, const std::string &task, int slice, uint64_t seed,
                         double seconds, double most, const std::atomic<bool> &stop);

/// Keeps of a target's corpus what its features need: a smaller folder takes its place once it has
/// been replayed. Returns the files before and after; equal where nothing was won or the replay
/// failed.
std::pair<size_t, size_t> prune_corpus(const Options &options, const std::string &target);

/// Puts back a corpus whose exchange was interrupted.
void repair_corpus(const Options &options, const std::string &target);

} // namespace assay::campaign
