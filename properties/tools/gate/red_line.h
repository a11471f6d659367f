// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace assay::gate {

/// One reason why a change does not pass.
struct RedLine {
  std::string id;     ///< "judge-changed", "new-finding": what --accept names
  std::string text;   ///< what, in one line
  std::string kernel; ///< empty: none in particular
  /// A person may let it pass; never so what a kernel does wrong.
  bool acceptable = true;
  std::string file = {}, reproduce = {}; ///< file of a case that shows it; may be empty
};

using RedLines = std::vector<RedLine>;

/// Every id, in the order of the table of REFERENCE.md, and whether --accept may name it.
struct LineId {
  std::string id;
  bool acceptable;
};
const std::vector<LineId> &line_ids();

/// A red line with one of these ids, without a file.
RedLine red_line(const std::string &id, const std::string &kernel, const std::string &text);

/// Empty, or why --accept may not name this.
std::string why_not_accepted(const std::string &id);

inline void append(RedLines &to, RedLines more) {
  for (RedLine &line : more)
    to.push_back(std::move(line));
}

} // namespace assay::gate
