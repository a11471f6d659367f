// SPDX-License-Identifier: Apache-2.0
// Programs that the gate runs: git, builds, and the assay of either side.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace assay::gate {

struct Command {
  std::vector<std::string> words;                 ///< the program and its arguments; found by PATH
  std::string folder;                             ///< where it runs; empty: here
  std::map<std::string, std::string> environment; ///< beside what this process has
  std::string log;                                ///< file that takes its output as well; or empty
  double seconds = 0; ///< it is asked to end after these, and made to 60 s later; 0: never
  std::function<void(double seconds)> waiting; ///< called a few times a second; or null
};

struct Ended {
  int code = 0; ///< 128 + signal for one that a signal ended, 124 when its time was over
  std::string out, err;
  bool ok() const { return code == 0; }
};

/// Runs to the end; standard input is empty. GateError where it cannot be started.
Ended run(const Command &command);

/// The last line of a text that says something; at most 300 characters.
std::string last_line(const std::string &text);

} // namespace assay::gate
