// SPDX-License-Identifier: Apache-2.0
#include "properties/run/probe.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <functional>
#include <optional>
#include <set>
#include <string_view>

#include "properties/call/materialise.h"
#include "properties/case/codec.h"
#include "properties/case/problem_gen.h"

namespace assay {
namespace {

bool takes(Sut &asked, const Problem &p, std::string *reason = nullptr) {
  if (!problem_error(p, full_limits()).empty()) return false;
  Problem blank = p; // none of the answers follows values, whose making takes half of the time
  blank.q = blank.k = blank.v = {.regime = Regime::kZero};
  Tensors t = materialise(blank);
  const RunResult answer = asked.run(t);
  if (reason != nullptr) *reason = answer.hazards.empty() ? answer.message : answer.hazards[0].text;
  // What must not be refused is found when it runs, and not hidden here.
  return answer.status != ASSAY_UNSUPPORTED && answer.status != ASSAY_CAPACITY_EXCEEDED;
}

Problem simplest(Family family) {
  Problem p = decode_family({}, large_limits(), family);
  for (int &len : p.seq_lens)
    len = 64;
  for (CascadeLevel &level : p.levels)
    for (int &len : level.lens)
      len = 64;
  return p;
}

/// Fields that narrow kernels fix, those that they fix most often last: these change fastest.
struct Axis {
  const char *name;
  std::vector<int> values; ///< beside the simplest
};
const std::vector<Axis> &axes() {
  static const std::vector<Axis> list = {
      {"q_len", {4}},
      {"lse_base", {static_cast<int>(LseBase::kBase2)}},
      {"kv_dtype", {static_cast<int>(KvType::kE4m3), static_cast<int>(KvType::kE5m2)}},
      {"group_size", {8, 4, 2}},
      {"level.page_size", {16, 32, 64, 128, 8}},
      {"page_size", {16, 32, 64, 128, 8}},
      {"head_dim", {128, 256}},
      {"dtype", {static_cast<int>(Dtype::kFp16)}}};
  return list;
}

std::optional<Problem> search(Sut &kernel, const Problem &p, size_t axis) {
  if (axis == axes().size()) return takes(kernel, p) ? std::optional(p) : std::nullopt;
  if (auto found = search(kernel, p, axis + 1)) return found;
  for (int value : axes()[axis].values) {
    const Problem other = with_field(p, axes()[axis].name, value);
    if (other == p) continue; // the family does not have it
    if (auto found = search(kernel, other, axis + 1)) return found;
  }
  return std::nullopt;
}

/// Cases worth asking about before one is known that the kernel takes: 400 larger ones took a
/// minute.
Limits limits_of_steps() {
  Limits limits = large_limits();
  limits.batch = limits.kv_heads = 64;
  return limits;
}

/// A case that the kernel takes, where it names what it refuses: a change of one field after which
/// it names something else may be a step towards it. Numbers in its words are no difference.
std::optional<Problem> follow_reasons(Sut &kernel, const Problem &first) {
  constexpr int kMostAsked = 4000;
  int asked = 0;
  std::set<std::string> known = {""};
  std::vector<Problem> steps;
  const auto take = [&](const Problem &p) {
    ++asked;
    std::string reason;
    if (takes(kernel, p, &reason)) return true;
    std::erase_if(reason, [](unsigned char c) { return std::isdigit(c) != 0; });
    if (known.insert(reason).second) steps.push_back(p);
    return false;
  };
  if (take(first)) return first;
  const std::vector<ShapeField> fields = shape_fields(first.family);
  while (!steps.empty()) {
    const Problem from = steps.back();
    steps.pop_back();
    for (const ShapeField &field : fields)
      for (int value : field.values) {
        const Problem p = with_field(from, field.name, value);
        if (!problem_error(p, limits_of_steps()).empty()) continue;
        if (asked == kMostAsked) return std::nullopt;
        if (take(p)) return p;
      }
  }
  return std::nullopt;
}

/// A case that the kernel takes: few fields off the simplest one, one of many draws, where its
/// words lead, or a model's number of heads with all that is off the simplest one.
std::optional<Problem> find_base(Sut &kernel, Family family,
                                 const std::map<std::string, int> &known) {
  Problem p = simplest(family);
  for (const auto &[name, value] : known)
    p = with_field(p, name, value);
  if (auto found = search(kernel, p, 0)) return found;
  constexpr uint64_t kDraws = 1000;
  for (uint64_t seed = 0; seed < kDraws; ++seed)
    if (Problem drawn = draw_problem(fuzz_limits(), family, seed);
        drawn.batch > 0 && takes(kernel, drawn))
      return drawn;
  if (auto found = follow_reasons(kernel, p)) return found;
  for (int heads : {8, 4, 2})
    if (const Problem other = with_field(p, "num_kv_heads", heads); other != p)
      if (auto found = search(kernel, other, 0)) return found;
  return std::nullopt;
}

/// Sizes that tell whether a kernel refuses any at all: small ones, powers of two with their
/// neighbours, and every width of a row. A kernel in Python runs each that it is asked about: all
/// of them took 22 s.
bool is_telling(const ShapeField &field, int value) {
  return field.name == "head_dim" || value <= 9 || std::has_single_bit(unsigned(value)) ||
         std::has_single_bit(unsigned(value) - 1) || std::has_single_bit(unsigned(value) + 1);
}

/// What the kernel takes of a field: all values are asked about where it refuses a telling one.
Envelope::Field ask(Sut &asked, const Problem &base, const ShapeField &field) {
  std::map<int, std::string> refused;
  const auto ask_all = [&](bool telling) {
    for (int value : field.values) {
      std::string reason;
      if (is_telling(field, value) == telling &&
          !takes(asked, with_field(base, field.name, value), &reason))
        refused[value] = reason;
    }
  };
  ask_all(true);
  if (!refused.empty()) ask_all(false);
  Envelope::Field out;
  for (int value : field.values) {
    const auto at = refused.find(value);
    if (at == refused.end()) {
      out.taken.push_back(value);
    } else {
      out.refused.push_back(value);
      out.reasons.push_back(at->second);
    }
  }
  return out;
}

} // namespace

Envelope probe_envelope(const assay_kernel &kernel, bool isolate,
                        const std::map<std::string, int> &known) {
  assay_kernel asked = kernel;
  asked.run = [](const void *) -> assay_status { return ASSAY_OK; };
  asked.plan = nullptr;
  const auto sut = isolate ? make_process_sut(asked) : make_sut(asked);
  return probe_envelope(*sut, known);
}

bool is_narrow(const assay_kernel &own) {
  constexpr std::string_view kNarrow[] = {"exchange_scatter", "exchange_all", "sharded_attention"};
  return std::find(std::begin(kNarrow), std::end(kNarrow), own.name) != std::end(kNarrow);
}

Envelope probe_envelope(Sut &asked, const std::map<std::string, int> &known) {
  Envelope out;
  const Family family = asked.family();
  const std::optional<Problem> base = find_base(asked, family, known);
  if (!base) return out;
  for (const ShapeField &field : shape_fields(family))
    if (auto answers = ask(asked, *base, field); !answers.refused.empty() && !answers.taken.empty())
      out.fields[field.name] = answers;
  return out;
}

} // namespace assay
