// SPDX-License-Identifier: Apache-2.0
// The seed corpus of a target, for controls: what is committed must be enough to catch them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <vector>

#include "fuzz/target.h"

namespace assay::fuzz {

/// The first violation that `check` finds in the seeds of `target`; empty when there is none.
/// Throws when there are no seeds.
template <class Check>
std::string first_violation(const char *target, Check check) {
  namespace fs = std::filesystem;
  std::vector<fs::path> paths;
  for (const auto &entry : fs::directory_iterator(fs::path(ASSAY_SEEDS) / target))
    paths.push_back(entry.path());
  if (paths.empty()) throw std::runtime_error(std::string("no seeds for ") + target);
  std::sort(paths.begin(), paths.end());
  for (const fs::path &path : paths) {
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    const std::string found =
        check(Input(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
    if (!found.empty()) return found + " (" + path.filename().string() + ")";
  }
  return "";
}

} // namespace assay::fuzz
