// SPDX-License-Identifier: Apache-2.0
// The document of `check --json` as its reports read it. Strings in it may be anything that UTF-8
// can spell: names and messages of foreign kernels are hostile input.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace assay::report {

using nlohmann::json;

/// "PASS", "FAIL", or "INCOMPLETE" for a run that proves nothing.
std::string verdict_word(const json &document);
/// "2 findings in 4230 cases of 5 kernels: target simt, seed 1, 74.2 s".
std::string summary_line(const json &document);
/// ", assumed: finite_pool" of a run that was not asked everything, else "".
std::string assumed_text(const json &document);

/// What was checked and by what, as far as the document says: "library my.so (0123456789abcdef),
/// assay 0.1.0 of abc, 2026-11-25, host, Linux x86_64, 2 processors".
std::string identity_line(const json &document);

/// The finding that speaks for its group, and the names of the other properties that see it.
const json &sharpest(const json &document, const json &group);
std::vector<std::string> also_seen_by(const json &group);

/// A kept case that came back, or an open one that passes.
struct KeptTrouble {
  std::string file, kernel, property, message; ///< an open case that passes names no kernel
};
/// One for each mistake; `all`: one for each case and property, also of what else was found.
std::vector<KeptTrouble> kept_troubles(const json &document, bool all = false);

/// What a run does not prove, one line each; properties that were not run in one line a kernel.
struct Gap {
  std::string kernel, property, text; ///< property empty: of the kernel as a whole
  bool unstarted = false;             ///< properties that were not run
  bool undecided = false;             ///< cases that the oracle could not decide
  bool kept = false;                  ///< one of them is a kept finding
};
std::vector<Gap> gaps(const json &document);
/// What a kernel's gap says of which no property decided a case.
inline constexpr const char *kNothingDecided = "no property decided a case";
/// The same for people: a kernel of which nothing was decided has one line, with the words of its
/// refusals.
std::vector<Gap> gaps_in_short(const json &document);

/// What one property has seen of one class of cases.
enum class Cell {
  kNothing, ///< the class is none of the property's
  kCovered,
  kOutside, ///< outside of what the kernel takes
  kMissing  ///< it should have been there
};
struct Coverage {
  std::vector<std::string> properties;
  struct Row {
    std::string name; ///< name of the class
    std::vector<Cell> cells;
    std::vector<int> cases;
    Cell all; ///< missing where one property misses it, else covered where one covers it
  };
  std::vector<Row> rows;      ///< classes that matter to the kernel's family, in their order
  int count(Cell cell) const; ///< number of rows
  std::vector<std::string> names(Cell cell) const;
};
Coverage coverage(const json &document, const std::string &kernel);

/// The largest size of each field that ten judged draws reached: fields, and a row of sizes for
/// each kernel, "-" where it has no such field. Empty of documents that do not say.
struct Reached {
  std::vector<std::string> fields;
  struct Row {
    std::string kernel;
    std::vector<std::string> sizes;
  };
  std::vector<Row> rows;
};
Reached reached(const json &document);

/// "0.731", "1.2e+03", "-" for nothing.
std::string ratio_text(double ratio);

/// "a, b, c".
std::string joined(const std::vector<std::string> &words);
/// A string or number of an object, or what stands for it where there is none.
std::string text_of(const json &object, const char *key);

} // namespace assay::report
