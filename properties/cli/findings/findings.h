// SPDX-License-Identifier: Apache-2.0
// The failure database: cases that failed once, replayed by every `assay check` before it draws.
#pragma once

#include <atomic>
#include <memory>

#include "properties/cli/findings/kept_verdict.h"
#include "properties/cli/session/session.h"

namespace assay {

/// Where cases of findings lie; empty: where they usually do.
struct FindingFolders {
  std::string out;  ///< of new ones
  std::string kept; ///< of those that are replayed first
};

/// One property on one kernel, on one kept case.
struct KeptResult {
  std::string path, kernel, property;
  CaseStatus status; ///< that counts today
  CheckResult result;
  /// Not empty: it shows the mistake of another finding, which this names, and is none of its own.
  std::string same_as = {};
  /// With a failure of a fixed case: that, as a run that found it.
  std::shared_ptr<const PropertyRun> found = nullptr;
};

/// One file that concerns the selection.
struct KeptFile {
  std::string path;
  LedgerEntry entry;
  KeptVerdict verdict;
  bool shape = false; ///< of corpus/shapes: nothing was ever wrong with it
};

struct KeptFindings {
  std::vector<std::string> folders; ///< that exist
  bool none_with_program = false;   ///< kept_folder() found nothing, and no folder was named
  std::vector<KeptFile> files;      ///< that concern the selected kernels and properties
  int others = 0;                   ///< that do not
  std::vector<KeptResult> results;
  int failed() const;   ///< failures of fixed cases, open ones that pass
  int findings() const; ///< of those, without results that are `same_as` another
  int undecided() const;
  int shapes() const; ///< files
  int failed_shapes() const;
  int refused_shapes() const;         ///< of which no kernel here ran any case
  int other_shapes = 0;               ///< about kernels and properties that are not selected
  int count(CaseStatus status) const; ///< files
};

/// Replays every `.case` of these folders on the kernels and properties it names, as far as
/// they are selected, in order of file names. A case that cannot be read is a CliError: a database
/// that silently loses entries protects from nothing.
KeptFindings replay_kept(const Session &session, const FindingFolders &folders,
                         const std::vector<const assay_kernel *> &kernels,
                         const std::vector<const Property *> &properties);

/// One mistake is one finding, however many cases show it: sets `same_as` of the others.
void group_kept(const Session &session, KeptFindings &kept, const std::atomic<bool> &stop);

/// Lines for the reader: failures, then one line of counts.
void report_kept(const Session &session, const KeptFindings &kept);
nlohmann::json to_json(const KeptFindings &kept);

} // namespace assay
