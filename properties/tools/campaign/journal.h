// SPDX-License-Identifier: Apache-2.0
// What a campaign has done, a line of JSON each, appended and never rewritten: whatever ends the
// program, what stands there holds, and a line cut short is the last one.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace assay::campaign {

class Journal {
public:
  /// Opens or makes FOLDER/journal.jsonl and locks it for this process. A last line that is not
  /// whole is cut off; any other line that is not JSON is an error, not a shorter journal.
  explicit Journal(const std::string &folder);
  ~Journal();
  Journal(const Journal &) = delete;

  /// On disk when it returns. CampaignError where it cannot be: what was appended before stays.
  void append(const nlohmann::json &line);
  /// Everything so far, the oldest first.
  std::vector<nlohmann::json> lines() const;

private:
  void read(const std::string &path);

  int fd_ = -1;
  mutable std::mutex mutex_;
  std::vector<nlohmann::json> lines_;
};

} // namespace assay::campaign
