// SPDX-License-Identifier: Apache-2.0
#include "properties/case/simplest.h"

#include <map>
#include <set>
#include <sstream>

#include "properties/case/case_text.h"
#include "properties/case/codec.h"

namespace assay {
namespace {

/// Whether a value of a field that the simplest case does not write is the one that it has there. A
/// window is written where there is one.
bool is_absent(const std::string &name, const std::string &value) {
  static const std::set<std::string> kAbsent = {"0", "no", "none", "same", "unit"};
  return name != "window_left" && kAbsent.contains(value);
}

struct Field {
  std::string name, value;
};

std::vector<Field> fields_of(const Problem &p) {
  std::vector<Field> out;
  std::istringstream lines(format_problem(p));
  for (std::string line; std::getline(lines, line);)
    if (const size_t at = line.find(" = "); at != line.npos)
      out.push_back({line.substr(0, at), line.substr(at + 3)});
  return out;
}

bool is_seed(const std::string &name) { return name.ends_with("seed") && name != "base_seed"; }

} // namespace

std::vector<std::string> differences(const Problem &p) {
  std::map<std::string, std::string> simplest;
  for (const Field &field : fields_of(decode_family({}, full_limits(), p.family)))
    simplest[field.name] = field.value;
  std::vector<std::string> out;
  for (const auto &[name, value] : fields_of(p)) {
    const auto found = simplest.find(name);
    const bool same = found == simplest.end() ? is_absent(name, value) : found->second == value;
    if (!same && !is_seed(name)) out.push_back(name + " = " + value);
  }
  return out;
}

} // namespace assay
