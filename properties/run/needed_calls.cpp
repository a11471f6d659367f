// SPDX-License-Identifier: Apache-2.0
#include "properties/run/needed_calls.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "properties/case/case_text.h"
#include "properties/case/simplest.h"

namespace assay {
namespace {

std::vector<std::string> lines_of(const Problem &p) {
  std::istringstream text(format_problem(p));
  std::vector<std::string> out;
  for (std::string line; std::getline(text, line);)
    out.push_back(line);
  return out;
}

std::string name_of_line(const std::string &line) { return line.substr(0, line.find(" =")); }

/// Lines of `p` that `other` does not have.
std::vector<std::string> own_lines(const Problem &p, const Problem &other) {
  const std::vector<std::string> theirs = lines_of(other);
  const std::set<std::string> same(theirs.begin(), theirs.end());
  std::vector<std::string> out;
  for (std::string &line : lines_of(p))
    if (!same.contains(line)) out.push_back(std::move(line));
  return out;
}

FieldNames differing(const Problem &a, const Problem &b) {
  FieldNames out;
  for (const auto &lines : {own_lines(a, b), own_lines(b, a)})
    for (const std::string &line : lines)
      out.insert(name_of_line(line));
  return out;
}

} // namespace

CallsBefore needed_calls(const std::vector<Problem> &history, const Problem &last,
                         const std::function<bool(const CallsBefore &)> &fails,
                         const std::function<bool()> &spent) {
  CallsBefore out{{}, last};
  for (size_t i = history.size(); i > 0 && !spent(); --i) // most often one suffices
    if (fails({{history[i - 1]}, last})) return {{history[i - 1]}, last};
  for (size_t count = 2; !spent(); count *= 2) {
    const size_t some = std::min(count, history.size());
    out.before.assign(history.end() - static_cast<std::ptrdiff_t>(some), history.end());
    if (!out.before.empty() && fails(out)) break;
    if (some == history.size()) return {{}, last};
  }
  for (size_t size = (out.before.size() + 1) / 2; !spent(); size = (size + 1) / 2) {
    for (size_t from = 0; from < out.before.size() && out.before.size() > 1 && !spent();) {
      CallsBefore fewer = out;
      const auto begin = fewer.before.begin() + static_cast<std::ptrdiff_t>(from);
      const size_t end = std::min(size, out.before.size() - from);
      fewer.before.erase(begin, begin + static_cast<std::ptrdiff_t>(end));
      if (!fewer.before.empty() && fails(fewer))
        out = fewer;
      else
        from += size;
    }
    if (size <= 1) break;
  }
  if (out.before.size() > kMaxCasesBefore) out.before.clear(); // no file would hold them
  return out;
}

std::optional<Problem> with_fields_of(const Problem &p, const Problem &from,
                                      const FieldNames &names) {
  std::string text = "assay-case 1\n";
  for (const auto &[lines, wanted] : {std::pair{lines_of(p), false}, {lines_of(from), true}})
    for (const std::string &line : lines)
      if (names.contains(name_of_line(line)) == wanted) text += line + "\n";
  const auto parsed = parse_case(text + "end\n");
  const Case *c = std::get_if<Case>(&parsed);
  if (c == nullptr || !problem_error(c->problem, full_limits()).empty()) return std::nullopt;
  return c->problem;
}

FieldNames needed_differences(const Problem &earlier, const Problem &last,
                              const std::function<bool(const CallsBefore &)> &fails,
                              const std::function<bool()> &spent) {
  FieldNames names = differing(earlier, last);
  const auto suffice = [&](const FieldNames &some) {
    const auto before = with_fields_of(last, earlier, some);
    return before && *before != last && !spent() && fails({{*before}, last});
  };
  for (const std::string &name : names)
    if (suffice({name})) return {name};
  for (const std::string &name : FieldNames(names)) {
    FieldNames fewer = names;
    fewer.erase(name);
    if (suffice(fewer)) names = fewer;
  }
  return names;
}

std::string how_earlier_differs(const Problem &earlier, const Problem &last) {
  constexpr int kShown = 6;
  const std::vector<std::string> of_earlier = differences(earlier), of_last = differences(last);
  std::string out;
  int count = 0;
  const auto add = [&](const std::string &words) {
    if (++count <= kShown) out += (out.empty() ? "" : ", ") + words;
  };
  FieldNames named;
  for (const std::string &field : of_earlier) {
    named.insert(name_of_line(field));
    if (std::find(of_last.begin(), of_last.end(), field) == of_last.end()) add(field);
  }
  for (const std::string &field : of_last)
    if (!named.contains(name_of_line(field))) add("no " + field);
  if (count > kShown) out += ", ...";
  return out;
}

} // namespace assay
