// SPDX-License-Identifier: Apache-2.0
#include "properties/relate/symptom.h"

#include <cctype>
#include <charconv>
#include <cmath>

namespace assay {
namespace {

/// The same mistake in cases of other sizes gives the same text.
std::string without_numbers(const std::string &line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(line[i])) != 0;
    const bool point = line[i] == '.' && !out.empty() && out.back() == '#'; // of a fraction
    if (!digit && !point)
      out += line[i];
    else if (out.empty() || out.back() != '#')
      out += '#';
  }
  return out.substr(0, out.find(", the first"));
}

} // namespace

double Symptom::excess() const { return std::fabs(got - expected) / allowed; }

const char *name_of(Symptom::Kind kind) {
  static constexpr const char *kNames[] = {"unknown", "outside",   "not finite", "NaN lost",
                                           "bits",    "not exact", "not empty",  "hazard",
                                           "memory",  "refused",   "crash",      "declared"};
  return kNames[static_cast<int>(kind)];
}

Symptom wrong_element(Symptom::Kind kind, int row, int head, int dim) {
  Symptom s;
  s.kind = kind;
  s.row = row;
  s.head = head;
  s.dim = dim;
  return s;
}

Symptom wrong_value(int row, int head, int dim, double got, double expected, double allowed) {
  const bool lost = !std::isfinite(got) && std::isfinite(expected);
  Symptom s =
      wrong_element(lost ? Symptom::Kind::kNotFinite : Symptom::Kind::kOutside, row, head, dim);
  s.got = got;
  s.expected = expected;
  s.allowed = allowed;
  return s;
}

Symptom plain_symptom(Symptom::Kind kind, const std::string &line) {
  Symptom s;
  s.kind = kind;
  s.where = without_numbers(line);
  return s;
}

Symptom hazard_symptom(const std::string &line) {
  const size_t place = line.find(": ");
  const size_t colon = place == line.npos ? line.npos : line.rfind(':', place - 1);
  int number = 0;
  if (colon != line.npos) {
    const char *end = line.data() + place;
    const auto [at, ec] = std::from_chars(line.data() + colon + 1, end, number);
    if (ec != std::errc() || at != end) number = 0;
  }
  if (number > 0) {
    Symptom s;
    s.kind = Symptom::Kind::kHazard;
    s.file = line.substr(0, colon);
    s.line = number;
    const size_t kind = place + 2;
    s.where = line.substr(kind, line.find(':', kind) - kind) + " at " + line.substr(0, place);
    return s;
  }
  // The executor's words without a place begin with the hazard's kind, a process's with its end.
  const bool process = line.rfind("the kernel", 0) == 0 || line.rfind("the worker", 0) == 0;
  return plain_symptom(process ? Symptom::Kind::kCrash : Symptom::Kind::kHazard, line);
}

} // namespace assay
