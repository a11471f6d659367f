// SPDX-License-Identifier: Apache-2.0
#include "properties/relate/symptom.h"

#include <cctype>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

namespace assay {
namespace {

/// The place of a hazard that has no line of the kernel.
std::string place_of(const Hazard &h) {
  switch (h.kind) {
  case Hazard::Kind::kExecutor:
    return h.buffer.empty() ? h.name : h.name + ": " + h.buffer;
  case Hazard::Kind::kUnsaid:
    return "hazard without a report: " + without_numbers(h.name);
  case Hazard::Kind::kDevice:
    return "cuda: " + without_numbers(h.name);
  case Hazard::Kind::kThrown:
    return "the kernel threw: " + without_numbers(h.name);
  case Hazard::Kind::kRaised:
    return "the kernel raised " + without_numbers(h.name);
  case Hazard::Kind::kExited:
    return "the kernel ended its process with exit(#)";
  case Hazard::Kind::kSignal:
    return fmt::format("the kernel's process died of signal # ({})",
                       without_numbers(strsignal(h.signal)));
  case Hazard::Kind::kGone:
    return "the kernel's process is gone";
  case Hazard::Kind::kHung:
    return "the kernel has not returned for # s";
  case Hazard::Kind::kChannel:
    return "the kernel closed or corrupted the channel of its process";
  case Hazard::Kind::kNoReply:
    return "the kernel's process sent no sound reply";
  }
  return "";
}

/// Whether it says how the process of a kernel ended, or the call in it.
bool is_crash(Hazard::Kind kind) {
  return kind != Hazard::Kind::kExecutor && kind != Hazard::Kind::kUnsaid &&
         kind != Hazard::Kind::kDevice;
}

const char *what_changed(Violation::Kind kind) {
  switch (kind) {
  case Violation::Kind::kInput:
    return "# bytes of an input written";
  case Violation::Kind::kDeadOutput:
    return "# bytes outside the live output written";
  case Violation::Kind::kPastEnd:
    return "guard byte # past its end written";
  case Violation::Kind::kBeforeStart:
    return "guard byte # before its start written";
  }
  return "";
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

Symptom plain_symptom(Symptom::Kind kind, const std::string &where) {
  Symptom s;
  s.kind = kind;
  s.where = where;
  return s;
}

Symptom symptom_of(const Hazard &h) {
  const bool crash = is_crash(h.kind);
  if (h.line == 0 || crash) {
    Symptom s = plain_symptom(crash ? Symptom::Kind::kCrash : Symptom::Kind::kHazard, place_of(h));
    s.hung = h.kind == Hazard::Kind::kHung;
    return s;
  }
  Symptom s =
      plain_symptom(Symptom::Kind::kHazard, fmt::format("{} at {}:{}", h.name, h.file, h.line));
  s.file = h.file;
  s.line = h.line;
  return s;
}

Symptom symptom_of(const Violation &v) {
  return plain_symptom(Symptom::Kind::kMemory,
                       without_numbers(v.buffer) + ": " + what_changed(v.kind));
}

Symptom symptom_of(const WrongAnswer &answer) {
  if (!answer.ended.empty())
    return plain_symptom(Symptom::Kind::kDeclared,
                         "asked about a call: " + symptom_of(answer.ended[0]).where);
  return plain_symptom(Symptom::Kind::kDeclared,
                       fmt::format("{}: {} {}", without_numbers(answer.call), name_of(answer.asked),
                                   name_of(answer.answer)));
}

Symptom symptom_of(const oracle::OrderError &error) {
  return plain_symptom(Symptom::Kind::kDeclared,
                       std::string("key order: ") + oracle::name_of(error.kind));
}

std::string without_numbers(const std::string &words) {
  std::string out;
  for (const char c : words) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    const bool point = c == '.' && !out.empty() && out.back() == '#'; // of a fraction
    if (!digit && !point)
      out += c;
    else if (out.empty() || out.back() != '#')
      out += '#';
  }
  return out;
}

} // namespace assay
