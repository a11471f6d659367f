// SPDX-License-Identifier: Apache-2.0
// corpus/bugs/bugs.csv: each bug, who reported it, and the draw of `assay check` that shows it.
#pragma once

#include <fstream>
#include <string>
#include <vector>

namespace assay {

struct BugRow {
  std::string name, kernel, reports, cause;
  std::string property; ///< empty: not recorded; "none": its draws show nothing
  std::string draw, cases, seconds;

  bool is_mutant() const { return kernel == "mutant"; }
  bool recorded() const { return !property.empty() && property != "none"; }
};

inline std::vector<std::string> fields_of(const std::string &line) {
  std::vector<std::string> out(1);
  for (char c : line)
    c == ',' ? out.emplace_back() : out.back() += c, void();
  return out;
}

/// Reads the rows of the file at `path` behind its header; missing fields at the end are empty.
inline std::vector<BugRow> read_bug_rows(const std::string &path) {
  std::vector<BugRow> out;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::vector<std::string> f = fields_of(line);
    f.resize(8);
    out.push_back({f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]});
  }
  return out;
}

inline std::string csv(const BugRow &row) {
  std::string out;
  for (const std::string &field : {row.name, row.kernel, row.reports, row.cause, row.property,
                                   row.draw, row.cases, row.seconds})
    out += (out.empty() ? "" : ",") + field;
  return out;
}

} // namespace assay
