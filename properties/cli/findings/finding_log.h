// SPDX-License-Identifier: Apache-2.0
// The findings of a `check`: on disk and named as soon as they are shrunk, with all that is known
// of them in its document.
#pragma once

#include <map>

#include "properties/cli/findings/findings.h"
#include "properties/run/groups.h"

namespace assay {

class FindingLog {
public:
  /// `only` is what --only left of the draws.
  FindingLog(const Session &session, const FindingFolders &folders, std::string only);

  /// Files a finding that was just shrunk and says so in one line. Returns the file. Never throws:
  /// what cannot be written stands in the document.
  std::string found(const PropertyRun &run);

  /// Files the case of a kernel that has not returned, until found() has a smaller one, and says
  /// so.
  void hung(const PropertyRun &run, const Problem &p, const CheckResult &result);

  /// Sorts the findings into groups; before write_json(). A kept case that shows one of them is
  /// `same_as` it from then on.
  void group(const RunSummary &summary, KeptFindings &kept, const std::atomic<bool> &stop);
  const std::vector<FindingGroup> &groups() const { return groups_; }

  /// Adds `found`, an entry for each finding, and `groups`, which name theirs by number.
  void write_json(nlohmann::json &document, uint64_t seed);

private:
  struct Written {
    std::string path, error;
  };
  Written write(const Case &c) const;
  void say(const std::string &line) const;
  std::string command_that_draws(const PropertyRun &run, uint64_t seed) const;
  nlohmann::json found_json(const NamedFinding &found, uint64_t seed, size_t group);
  nlohmann::json group_json(const FindingGroup &group, size_t first);

  const Session &session_;
  std::string folder_, only_;
  std::map<const PropertyRun *, Written> written_;
  std::map<const PropertyRun *, std::string> drawn_; ///< files of hung()
  std::vector<FindingGroup> groups_;
};

} // namespace assay
