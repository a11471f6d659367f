// SPDX-License-Identifier: Apache-2.0
#include "properties/run/probe.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>

#include "properties/call/materialise.h"
#include "properties/case/codec.h"
#include "properties/case/problem_gen.h"

namespace assay {
namespace {

bool takes(Sut &asked, const Problem &p, std::string *reason = nullptr) {
  if (!problem_error(p, full_limits()).empty()) return false;
  Tensors t = materialise(p);
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

/// A case that the kernel takes: few fields off the simplest one, or one of many draws.
std::optional<Problem> find_base(Sut &kernel, Family family) {
  const Problem p = simplest(family);
  if (auto found = search(kernel, p, 0)) return found;
  constexpr uint64_t kDraws = 1000;
  for (uint64_t seed = 0; seed < kDraws; ++seed)
    if (Problem drawn = draw_problem(fuzz_limits(), family, seed);
        drawn.batch > 0 && takes(kernel, drawn))
      return drawn;
  return std::nullopt;
}

} // namespace

Envelope probe_envelope(const assay_kernel &kernel, bool isolate) {
  assay_kernel asked = kernel;
  asked.run = [](const void *) -> assay_status { return ASSAY_OK; };
  asked.plan = nullptr;
  const auto sut = isolate ? make_process_sut(asked) : make_sut(asked);
  return probe_envelope(*sut);
}

bool is_narrow(const assay_kernel &own) {
  constexpr std::string_view kNarrow[] = {"exchange_scatter", "exchange_all", "sharded_attention"};
  return std::find(std::begin(kNarrow), std::end(kNarrow), own.name) != std::end(kNarrow);
}

Envelope probe_envelope(Sut &asked) {
  Envelope out;
  const Family family = asked.family();
  const std::optional<Problem> base = find_base(asked, family);
  if (!base) return out;
  for (const ShapeField &field : shape_fields(family)) {
    Envelope::Field answers;
    for (int value : field.values) {
      std::string reason;
      if (takes(asked, with_field(*base, field.name, value), &reason)) {
        answers.taken.push_back(value);
      } else {
        answers.refused.push_back(value);
        answers.reasons.push_back(reason);
      }
    }
    if (!answers.refused.empty() && !answers.taken.empty()) out.fields[field.name] = answers;
  }
  return out;
}

} // namespace assay
