// SPDX-License-Identifier: Apache-2.0
// Programs that gate and campaign run: git, builds, fuzzers, and assay itself.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace assay::process {

struct ProcessError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Command {
  std::vector<std::string> words; ///< the program and its arguments; found by PATH
  std::string folder = {};        ///< where it runs; empty: here
  std::map<std::string, std::string> environment = {}; ///< beside what this process has
  std::string log = {}; ///< file that takes its output as well; or empty
  double seconds = 0;   ///< it is asked to end after these, and made to 60 s later; 0: never
  std::function<void(double seconds)> waiting = nullptr; ///< called a few times a second; or null
  const std::atomic<bool> *stop = nullptr;               ///< once set, as when the time is over
};

struct Ended {
  int code = 0; ///< 128 + signal for one that a signal ended, 124 when its time was over
  std::string out, err;
  bool ok() const { return code == 0; }
};

/// Runs to the end; standard input is empty. ProcessError where it cannot be started.
Ended run(const Command &command);

/// The last line of a text that says something; at most 300 characters.
std::string last_line(const std::string &text);

} // namespace assay::process
