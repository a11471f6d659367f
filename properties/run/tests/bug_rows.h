// SPDX-License-Identifier: Apache-2.0
// Tables of wrong kernels: corpus/bugs/bugs.csv and corpus/calls/calls.csv.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace assay {

inline std::vector<std::string> fields_of(const std::string &line) {
  std::vector<std::string> out(1);
  for (char c : line)
    c == ',' ? out.emplace_back() : out.back() += c, void();
  return out;
}

/// The rows of the file at `path` behind its header; missing fields at the end are empty.
inline std::vector<std::vector<std::string>> read_rows(const std::string &path, size_t fields) {
  std::vector<std::vector<std::string>> out;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    out.push_back(fields_of(line));
    out.back().resize(fields);
  }
  return out;
}

/// The draw of `assay check` that shows a wrong kernel at a seed.
struct Shown {
  std::string property; ///< "none": its draws show nothing
  std::string draw;
};

/// A wrong kernel, who reported it, and what shows it.
struct BugRow {
  std::string name, kernel, reports, cause;
  std::vector<Shown> shown; ///< at seeds from 1 on; empty: not recorded
  std::string cases, seconds;

  bool is_mutant() const { return kernel == "mutant"; }
  bool survives() const { return !shown.empty() && shown[0].property == "none"; }
  bool recorded() const { return !shown.empty() && !survives(); }
};

/// Properties and draws stand behind spaces, seed by seed.
inline std::vector<BugRow> read_bug_rows(const std::string &path) {
  std::vector<BugRow> out;
  for (const auto &f : read_rows(path, 8)) {
    out.push_back({f[0], f[1], f[2], f[3], {}, f[6], f[7]});
    std::istringstream properties(f[4]), draws(f[5]);
    for (Shown shown; properties >> shown.property;) {
      draws >> shown.draw;
      out.back().shown.push_back(shown);
    }
  }
  return out;
}

inline std::string csv(const BugRow &row) {
  std::string properties, draws, out;
  for (const Shown &shown : row.shown) {
    properties += (properties.empty() ? "" : " ") + shown.property;
    draws += (draws.empty() ? "" : " ") + shown.draw;
  }
  for (const std::string &field :
       {row.name, row.kernel, row.reports, row.cause, properties, draws, row.cases, row.seconds})
    out += (out.empty() ? "" : ",") + field;
  return out;
}

} // namespace assay
