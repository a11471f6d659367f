// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "properties/case/ledger.h"
#include "properties/case/problem.h"

namespace assay {

/// A `.case` file: a problem, what to run on it, and words for the reader.
struct Case {
  std::string kernel;          ///< empty: every kernel of the problem's family
  std::string property;        ///< empty: every property that applies
  std::string target;          ///< "simt" or "cuda"; empty: the command's
  std::string note;            ///< lines joined by '\n'
  LedgerEntry entry;           ///< lines `status` and `issue`; a file without them is fixed
  std::vector<Problem> before; ///< cases that run in front of it, in the same process
  Problem problem;
  friend bool operator==(const Case &, const Case &) = default;
};

struct CaseError {
  int line = 0; ///< 1-based; 0: the file as a whole
  std::string message;
};

/// Upper size of a text case; parse() refuses more.
inline constexpr size_t kMaxCaseBytes = 1 << 20;

/// Cases that one case may need in front of it.
inline constexpr size_t kMaxCasesBefore = 64;

/// `assay-case 1`, then one `field = value` per line, then `end`; `#` starts a comment. `family`
/// must be there, other fields that are absent take their simplest value; fields that the family
/// does not have are errors. Cases of the same form may stand in front: they have a problem and
/// nothing else, of the same family, and run first. Never crashes and allocates in proportion to
/// the text at most.
std::variant<Case, CaseError> parse_case(std::string_view text);

/// format(parse(format(c))) == format(c).
std::string format_case(const Case &c);

/// A foreign word for a message: in quotes, cut short, without control characters.
std::string quoted_word(std::string_view s);

/// Fields of a problem, without the header lines.
std::string format_problem(const Problem &p);

} // namespace assay
