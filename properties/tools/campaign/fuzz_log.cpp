// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/campaign/fuzz_log.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include <fmt/format.h>

namespace assay::campaign {
namespace {

/// The number behind the last `name`, or `otherwise`.
uint64_t last_number(const std::string &text, const std::string &name, uint64_t otherwise) {
  const size_t at = text.rfind(name);
  if (at == std::string::npos) return otherwise;
  return std::strtoull(text.c_str() + at + name.size(), nullptr, 10);
}

/// The number behind the first `name`: in a line of progress, words of inputs stand behind the
/// numbers.
uint64_t first_number(const std::string &line, const std::string &name) {
  const size_t at = line.find(name);
  return at == std::string::npos ? 0 : std::strtoull(line.c_str() + at + name.size(), nullptr, 10);
}

/// The rest of the first line that holds `mark`, from `mark` on.
std::string line_with(const std::string &text, const std::string &mark) {
  const size_t at = text.find(mark);
  if (at == std::string::npos) return "";
  return text.substr(at, text.find('\n', at) - at);
}

std::string message_of(const std::string &text) {
  for (const char *mark : {"VIOLATION: ", "runtime error: ", "SUMMARY: "}) {
    const std::string line = line_with(text, mark);
    if (!line.empty()) return line;
  }
  return "";
}

/// The file with the input that ended a run. A slow one ends none: libFuzzer only keeps it.
std::string artifact_of(const std::string &text) {
  const std::string unit = "Test unit written to ";
  for (size_t at = text.find(unit); at != std::string::npos; at = text.find(unit, at + 1)) {
    const std::string path = line_with(text.substr(at), unit).substr(unit.size());
    if (path.find("slow-unit-") == std::string::npos) return path;
  }
  return "";
}

std::string case_of(const std::string &text) {
  const size_t begin = text.find("assay-case ");
  if (begin == std::string::npos) return "";
  const size_t end = text.find("\nend\n", begin);
  return end == std::string::npos ? "" : text.substr(begin, end + 5 - begin);
}

/// Without the dictionary that libFuzzer recommends: words of the inputs, among them those that
/// are looked for here.
std::string without_dictionary(const std::string &text) {
  const size_t begin = text.find("###### Recommended dictionary");
  if (begin == std::string::npos) return text;
  const size_t end = text.find("###### End of recommended dictionary", begin);
  return text.substr(0, begin) + (end == std::string::npos ? "" : text.substr(end));
}

/// A run's lines of progress, and the others. The former quote words of the inputs as well.
struct Lines {
  std::vector<std::string> progress;
  std::string others;
};
Lines split_lines(const std::string &text) {
  Lines lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const bool progress =
        text[at] == '#' && at + 1 < end && std::isdigit(static_cast<unsigned char>(text[at + 1]));
    if (progress)
      lines.progress.push_back(text.substr(at + 1, end - at - 1));
    else
      lines.others.append(text, at, end - at);
    at = end;
  }
  return lines;
}

std::vector<std::pair<uint64_t, uint64_t>> on_the_way(const std::vector<std::string> &lines,
                                                      uint64_t executions) {
  constexpr uint64_t kParts = 8;
  std::vector<std::pair<uint64_t, uint64_t>> points;
  uint64_t part = 0; // part of the last point
  for (const std::string &line : lines) {
    const uint64_t at = std::strtoull(line.c_str(), nullptr, 10);
    const uint64_t features = first_number(line, " ft: ");
    if (features == 0 || at >= executions) continue;
    const uint64_t own = kParts * at / executions;
    if (own == part) {
      if (!points.empty()) points.back() = {at, features};
      continue;
    }
    part = own;
    points.emplace_back(at, features);
  }
  return points;
}

} // namespace

FuzzLog read_fuzz_log(const std::string &text) {
  const Lines lines = split_lines(text);
  const std::string said = without_dictionary(lines.others);
  FuzzLog log;
  log.executions = last_number(said, "stat::number_of_executed_units:", 0);
  if (log.executions == 0 && !lines.progress.empty()) // killed before its statistics
    log.executions = std::strtoull(lines.progress.back().c_str(), nullptr, 10);
  for (const std::string &line : lines.progress) {
    log.features = std::max(log.features, first_number(line, " ft: "));
    log.edges = std::max(log.edges, first_number(line, " cov: "));
  }
  log.progress = on_the_way(lines.progress, log.executions);
  const std::string artifact = artifact_of(said);
  if (!artifact.empty()) {
    log.artifact = artifact;
    log.message = message_of(said);
    if (log.message.empty()) log.message = "ended without a word";
    log.case_text = case_of(said);
  }
  return log;
}

std::string finding_key(const std::string &task, const std::string &message) {
  std::string plain = task + ":";
  bool number = false;
  for (const char c : message) {
    const bool digit = std::isxdigit(static_cast<unsigned char>(c)) != 0 &&
                       (number || std::isdigit(static_cast<unsigned char>(c)) != 0);
    if (digit && !number) plain += '#';
    if (!digit) plain += c;
    number = digit || (number && (c == '.' || c == 'x'));
  }
  uint32_t hash = 2166136261u; // FNV-1a
  for (const char c : plain)
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return fmt::format("{:08x}", hash);
}

} // namespace assay::campaign
