// SPDX-License-Identifier: Apache-2.0
#include "properties/case/case_text.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "properties/case/device_limits.h"
#include "properties/case/fields.h"

namespace assay {
namespace {

constexpr std::string_view kHeader = "assay-case 1", kEnd = "end";

std::string_view trim(std::string_view s) {
  auto from = s.find_first_not_of(" \t\r");
  if (from == s.npos) return {};
  return s.substr(from, s.find_last_not_of(" \t\r") - from + 1);
}

constexpr int kMostValues = 1 << 20; // of a list with repeats
constexpr size_t kFewRepeats = 8;    // are written out

/// "3, 4, 64 x 8192": many of one value are said once.
std::string list_of(const std::vector<int> &values) {
  std::string text;
  for (size_t i = 0; i < values.size();) {
    size_t end = i + 1;
    while (end < values.size() && values[end] == values[i])
      ++end;
    if (end - i <= kFewRepeats) end = i + 1;
    if (i > 0) text += ", ";
    text +=
        end == i + 1 ? fmt::format("{}", values[i]) : fmt::format("{} x {}", end - i, values[i]);
    i = end;
  }
  return text;
}

class Writer {
public:
  void integer(const std::string &name, int &value, const Range &) { line(name, value); }
  void eighths(const std::string &name, int &value, const Range &) { line(name, value); }
  void integers(const std::string &name, std::vector<int> &values, int, const Range &) {
    if (!values.empty()) line(name, list_of(values));
  }
  template <class E>
  void choice(const std::string &name, E &value, std::span<const EnumName<E>> options) {
    for (const auto &option : options)
      if (option.value == value) return line(name, option.name);
  }
  void flag(const std::string &name, bool &value) { line(name, value ? "yes" : "no"); }
  void added_flag(const std::string &name, bool &value, Added, bool) { flag(name, value); }
  void added_integers(const std::string &name, std::vector<int> &values, int count, const Range &r,
                      Added) {
    integers(name, values, count, r);
  }
  void word(const std::string &name, uint32_t &value) { line(name, value); }
  bool gate(bool present) { return present; }
  bool added_gate(bool present, int) { return present; }
  void fit(const std::string &, std::vector<int> &, int, int &) {}
  void page_ids(Problem &p, int, int) {
    if (!p.page_ids.empty()) line("page_ids", fmt::format("{}", fmt::join(p.page_ids, ", ")));
  }
  std::string text;

private:
  template <class T>
  void line(const std::string &name, const T &value) {
    text += fmt::format("{} = {}\n", name, value);
  }
};

/// Checks every field against its range; keeps the first error.
class Checker {
public:
  std::string error_name, error;

  void integer(const std::string &name, int &value, const Range &r) {
    if (value < r.lo || value > r.hi)
      fail(name, fmt::format("{} is outside {} .. {}", value, r.lo, r.hi));
    value = std::clamp(value, r.lo, r.hi);
  }
  void eighths(const std::string &name, int &value, const Range &r) {
    if (value % 8 != 0 || value < r.lo * 8 || value > r.hi * 8)
      fail(name, fmt::format("{} is not a multiple of 8 in {} .. {}", value, r.lo * 8, r.hi * 8));
    value = std::clamp(value / 8, r.lo, r.hi) * 8;
  }
  void integers(const std::string &name, std::vector<int> &values, int count, const Range &r) {
    if (static_cast<int>(values.size()) != count)
      fail(name, fmt::format("{} values, needs {}", values.size(), count));
    values.resize(count, r.simplest);
    for (int &value : values)
      integer(name, value, r);
  }
  template <class E>
  void choice(const std::string &name, E &value, std::span<const EnumName<E>> options) {
    for (const auto &option : options)
      if (option.value == value) return;
    std::string list;
    for (const auto &option : options)
      if (list.find(option.name) == list.npos)
        list += (list.empty() ? "" : ", ") + std::string(option.name);
    fail(name, "not one of " + list);
    value = options[0].value;
  }
  void flag(const std::string &, bool &) {}
  void added_flag(const std::string &, bool &, Added, bool) {}
  void added_integers(const std::string &name, std::vector<int> &values, int count, const Range &r,
                      Added) {
    if (!values.empty()) integers(name, values, count, r);
  }
  void word(const std::string &, uint32_t &) {}
  bool gate(bool) { return true; }
  bool added_gate(bool, int) { return true; }
  void fit(const std::string &name, std::vector<int> &lens, int page_size, int &slots) {
    std::vector<int> cut = lens;
    int before = slots;
    fields::cut_to_slots(cut, page_size, slots);
    if (cut != lens)
      fail(name,
           fmt::format("the pages hold more than {} slots, the limit for these heads", before));
    lens = cut;
  }
  void page_ids(Problem &p, int pages, int pool) {
    if (pages > fields::kMaxExplicitPages)
      fail("placement", fmt::format("explicit placement takes at most {} pages, the case has {}",
                                    fields::kMaxExplicitPages, pages));
    if (static_cast<int>(p.page_ids.size()) != pages)
      return fail("page_ids",
                  fmt::format("{} ids, the case has {} pages", p.page_ids.size(), pages));
    std::set<int> seen;
    for (int id : p.page_ids) {
      if (id < 0 || id >= pool)
        return fail("page_ids", fmt::format("page {} is outside the pool of {} pages", id, pool));
      if (!seen.insert(id).second)
        return fail("page_ids", fmt::format("page {} is used twice", id));
    }
  }

protected:
  void fail(const std::string &name, const std::string &message) {
    if (!error.empty()) return;
    error_name = name;
    error = message;
  }
};

struct Entry {
  std::string value;
  int line;
  bool used = false;
};

/// Assigns from the parsed lines, then checks.
class Reader {
public:
  explicit Reader(std::map<std::string, Entry> &entries) : entries_(entries) {}
  std::string error;
  int error_line = 0;

  void integer(const std::string &name, int &value, const Range &r) {
    value = r.simplest;
    if (Entry *entry = take(name)) parse_int(*entry, name, entry->value, value);
    check(name, [&](Checker &c) { c.integer(name, value, r); });
  }
  void eighths(const std::string &name, int &value, const Range &r) {
    value = r.simplest * 8;
    if (Entry *entry = take(name)) parse_int(*entry, name, entry->value, value);
    check(name, [&](Checker &c) { c.eighths(name, value, r); });
  }
  void integers(const std::string &name, std::vector<int> &values, int count, const Range &r) {
    values.clear();
    Entry *entry = take(name);
    if (entry != nullptr)
      parse_list(*entry, name, values);
    else
      values.assign(count, r.simplest);
    check(name, [&](Checker &c) { c.integers(name, values, count, r); });
  }
  template <class E>
  void choice(const std::string &name, E &value, std::span<const EnumName<E>> options) {
    value = options[0].value;
    Entry *entry = take(name);
    if (entry == nullptr) return;
    for (const auto &option : options) {
      if (entry->value != option.name) continue;
      value = option.value;
      return;
    }
    std::string list;
    for (const auto &option : options) {
      if (list.find(option.name) == list.npos)
        list += (list.empty() ? "" : ", ") + std::string(option.name);
    }
    fail(entry->line, name, quoted_word(entry->value) + " is not one of " + list);
  }
  void flag(const std::string &name, bool &value) { added_flag(name, value, Added{}, false); }
  void added_flag(const std::string &name, bool &value, Added, bool before) {
    value = before;
    Entry *entry = take(name);
    if (entry == nullptr) return;
    if (entry->value != "yes" && entry->value != "no")
      return fail(entry->line, name, quoted_word(entry->value) + " is not yes or no");
    value = entry->value == "yes";
  }
  void added_integers(const std::string &name, std::vector<int> &values, int count, const Range &r,
                      Added) {
    values.clear();
    if (entries_.contains(name)) integers(name, values, count, r);
  }
  void word(const std::string &name, uint32_t &value) {
    value = 0;
    Entry *entry = take(name);
    if (entry == nullptr) return;
    const char *end = entry->value.data() + entry->value.size();
    auto [at, ec] = std::from_chars(entry->value.data(), end, value);
    if (ec != std::errc() || at != end)
      fail(entry->line, name, quoted_word(entry->value) + " is not an integer in 0 .. 4294967295");
  }
  bool gate(bool) { return true; } // a field that is not there has its simplest value
  bool added_gate(bool, int) { return true; }
  void fit(const std::string &name, std::vector<int> &lens, int page_size, int &slots) {
    check(name, [&](Checker &c) { c.fit(name, lens, page_size, slots); });
  }
  void page_ids(Problem &p, int pages, int pool) {
    p.page_ids.clear();
    if (Entry *entry = take("page_ids")) parse_list(*entry, "page_ids", p.page_ids);
    check("page_ids", [&](Checker &c) { c.page_ids(p, pages, pool); });
  }
  void fail(int line, const std::string &name, const std::string &message) {
    if (!error.empty()) return;
    error = name + ": " + message;
    error_line = line;
  }

private:
  Entry *take(const std::string &name) {
    auto found = entries_.find(name);
    if (found == entries_.end()) return nullptr;
    found->second.used = true;
    return &found->second;
  }
  template <class F>
  void check(const std::string &name, F body) {
    Checker checker;
    body(checker);
    auto found = entries_.find(name);
    if (!checker.error.empty())
      fail(found == entries_.end() ? 0 : found->second.line, checker.error_name, checker.error);
  }
  void parse_int(const Entry &entry, const std::string &name, std::string_view text, int &value) {
    text = trim(text);
    const char *end = text.data() + text.size();
    auto [at, ec] = std::from_chars(text.data(), end, value);
    if (ec != std::errc() || at != end)
      fail(entry.line, name, quoted_word(text) + " is not an integer of 32 bits");
  }
  void parse_list(const Entry &entry, const std::string &name, std::vector<int> &values) {
    std::string_view rest = entry.value;
    while (error.empty()) {
      const auto comma = rest.find(',');
      std::string_view item = rest.substr(0, comma);
      int count = 1, value = 0;
      if (const auto times = item.find('x'); times != item.npos) {
        parse_int(entry, name, item.substr(0, times), count);
        item.remove_prefix(times + 1);
        const int room = kMostValues - static_cast<int>(values.size());
        if (count < 1 || count > room)
          fail(entry.line, name, fmt::format("{} is outside 1 .. {}", count, room));
      }
      parse_int(entry, name, item, value);
      if (error.empty()) values.insert(values.end(), static_cast<size_t>(count), value);
      if (comma == rest.npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  std::map<std::string, Entry> &entries_;
};

std::variant<std::map<std::string, Entry>, CaseError> split_lines(std::string_view text,
                                                                  std::string &note) {
  std::map<std::string, Entry> entries;
  bool header = false, end_seen = false;
  for (int number = 1; !text.empty(); ++number) {
    auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    const bool words = line.starts_with("note") || line.starts_with("issue"); // may hold a '#'
    line = trim(line.substr(0, words ? line.size() : line.find('#')));
    if (line.empty()) continue;
    if (!header) {
      if (line.starts_with("PK")) // a zip file, as .npz is
        return CaseError{number, "not a case; tensors of a call in an .npz are for "
                                 "'assay judge FILE'"};
      if (line != kHeader)
        return CaseError{number, "not a case: expected 'assay-case 1', got " + quoted_word(line)};
      header = true;
      continue;
    }
    if (end_seen) return CaseError{number, "text behind 'end': " + quoted_word(line)};
    if (line == kEnd) {
      end_seen = true;
      continue;
    }
    auto equals = line.find('=');
    if (equals == line.npos)
      return CaseError{number, "expected 'field = value', got " + quoted_word(line)};
    std::string name(trim(line.substr(0, equals)));
    std::string value(trim(line.substr(equals + 1)));
    if (name == "note") {
      note += (note.empty() ? "" : "\n") + value;
      continue;
    }
    auto [at, fresh] = entries.try_emplace(name, Entry{value, number});
    if (!fresh)
      return CaseError{number, fmt::format("{} is given twice, first on line {}", quoted_word(name),
                                           at->second.line)};
  }
  if (!header) return CaseError{0, "empty: expected 'assay-case 1'"};
  while (note.ends_with('\n')) // of empty lines, which would not be written again
    note.pop_back();
  // Absent fields have values, so that a cut file would be another case: its last line tells.
  if (!end_seen) return CaseError{0, "cut short: the last line of a case is 'end'"};
  return entries;
}

} // namespace

std::string quoted_word(std::string_view s) {
  std::string out = "'";
  for (char c : s.substr(0, 40))
    out += c >= ' ' && c < 127 ? c : '?';
  return out + (s.size() > 40 ? "...'" : "'");
}

namespace {

/// Takes the first case off the text where another one begins behind it, else all of it.
std::string_view take_case(std::string_view &text) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const bool next = at > 0 && trim(text.substr(at, end - at)) == kHeader;
    if (next) return std::exchange(text, text.substr(at)).substr(0, at);
    at = end + 1;
  }
  return std::exchange(text, std::string_view());
}

std::variant<Case, CaseError> parse_one(std::string_view text) {
  Case c;
  auto lines = split_lines(text, c.note);
  if (auto *error = std::get_if<CaseError>(&lines)) return *error;
  auto &entries = std::get<0>(lines);
  for (auto [name, field] :
       {std::pair{"kernel", &c.kernel}, {"property", &c.property}, {"target", &c.target}}) {
    auto found = entries.find(name);
    if (found == entries.end()) continue;
    *field = found->second.value;
    if (field->size() > 100) return CaseError{found->second.line, std::string(name) + ": too long"};
    found->second.used = true;
  }
  if (const auto found = entries.find("issue"); found != entries.end()) {
    c.entry.issue = found->second.value;
    found->second.used = true;
  }
  if (const auto found = entries.find("status"); found != entries.end()) {
    const std::string error = parse_status(found->second.value, c.entry);
    if (!error.empty()) return CaseError{found->second.line, "status: " + error};
    found->second.used = true;
  }
  Reader reader(entries);
  const auto family = entries.find("family");
  const bool paged = family != entries.end() && family->second.value == name_of(Family::kPaged);
  visit_fields(reader, c.problem, device_limits(paged ? Family::kPaged : Family::kCascade));
  if (!reader.error.empty()) return CaseError{reader.error_line, reader.error};
  for (const auto &[name, entry] : entries)
    if (!entry.used)
      return CaseError{entry.line, fmt::format("{} is no field of a {} case", quoted_word(name),
                                               name_of(c.problem.family))};
  // Every other field has a value when it is absent; a file without this one may be any other text.
  if (!entries.contains("family"))
    return CaseError{0, "family is missing: which kernels is it for"};
  return c;
}

/// Empty: nothing but a problem, of the family of the case that it stands in front of.
std::string wrong_in_front(const Case &c, const Case &last) {
  if (c.problem.family != last.problem.family) return "a case in front is of another family";
  Case bare;
  bare.problem = c.problem;
  return c == bare ? "" : "a case in front holds a problem and nothing else";
}

} // namespace

std::variant<Case, CaseError> parse_case(std::string_view text) {
  if (text.size() > kMaxCaseBytes)
    return CaseError{0, fmt::format("{} bytes, the limit is {}", text.size(), kMaxCaseBytes)};
  std::vector<Case> cases;
  int lines = 0;
  do {
    if (cases.size() > kMaxCasesBefore)
      return CaseError{lines, fmt::format("more than {} cases in front of one", kMaxCasesBefore)};
    const std::string_view one = take_case(text);
    auto parsed = parse_one(one);
    if (auto *error = std::get_if<CaseError>(&parsed)) {
      if (error->line > 0) error->line += lines;
      return *error;
    }
    cases.push_back(std::move(std::get<Case>(parsed)));
    lines += static_cast<int>(std::count(one.begin(), one.end(), '\n'));
  } while (!text.empty());
  Case last = std::move(cases.back());
  cases.pop_back();
  for (const Case &c : cases) {
    if (const std::string error = wrong_in_front(c, last); !error.empty())
      return CaseError{0, error};
    last.before.push_back(c.problem);
  }
  return last;
}

std::string format_problem(const Problem &p) {
  Writer writer;
  Problem copy = p;
  visit_fields(writer, copy, device_limits(p.family));
  return writer.text;
}

std::string format_case(const Case &c) {
  std::string text;
  for (const Problem &p : c.before)
    text += fmt::format("{}\n{}{}\n", kHeader, format_problem(p), kEnd);
  text += std::string(kHeader) + "\n";
  for (auto [name, value] :
       {std::pair{"kernel", &c.kernel}, {"property", &c.property}, {"target", &c.target}})
    if (!value->empty()) text += fmt::format("{} = {}\n", name, *value);
  if (c.entry.status != CaseStatus::kFixed)
    text += fmt::format("status = {}\n", format_status(c.entry));
  if (!c.entry.issue.empty()) text += fmt::format("issue = {}\n", c.entry.issue);
  std::string_view note = c.note;
  while (!note.empty()) {
    auto end = note.find('\n');
    text += fmt::format("note = {}\n", trim(note.substr(0, end)));
    note.remove_prefix(end == note.npos ? note.size() : end + 1);
  }
  return fmt::format("{}{}{}\n", text, format_problem(c.problem), kEnd);
}

std::string problem_error(const Problem &p, const Limits &limits) {
  Checker checker;
  Problem copy = p;
  visit_fields(checker, copy, limits);
  return checker.error.empty() ? "" : checker.error_name + ": " + checker.error;
}

} // namespace assay
