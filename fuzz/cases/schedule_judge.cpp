// SPDX-License-Identifier: Apache-2.0
#include "fuzz/cases/schedule_judge.h"

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fuzz/byte_reader.h"
#include "kernels/abi/kernel_table.h"
#include "properties/case/case_text.h"

namespace assay::fuzz {
namespace {

/// What kernels, or parts of them, meet in: bf16 and head_dim 64, as small as their barriers allow.
Problem attention(Family family, int batch, int group) {
  Problem p;
  p.family = family;
  p.batch = batch;
  p.group_size = group;
  p.page_size = 16;
  p.q = {Regime::kNormal, 0, 1};
  p.k = {Regime::kNormal, 0, 2};
  p.v = {Regime::kNormal, 0, 3};
  return p;
}

Problem paged(std::vector<int> lens, int group) {
  Problem p = attention(Family::kPaged, static_cast<int>(lens.size()), group);
  p.seq_lens = std::move(lens);
  return p;
}

Problem with(Problem p, int num_splits, KvType kv, bool enable_pdl) {
  p.num_splits = num_splits;
  p.kv = kv;
  p.enable_pdl = enable_pdl;
  return p;
}

/// Requests that share their first 192 keys; forced splits share whatever it gains.
Problem tree(int batch, int splits, KvType kv) {
  Problem p = with(paged(std::vector<int>(static_cast<size_t>(batch), 220), 2), splits, kv, false);
  p.sharing = Sharing::kTree;
  return p;
}

/// Blocks of several teams of warps.
Problem teams(Problem p, int kv_heads) {
  p.num_kv_heads = kv_heads;
  p.even_lengths = p.family == Family::kPaged;
  return p;
}

/// One segment for all, then one each.
Problem cascade(int shared, int own, int batch, int group) {
  Problem p = attention(Family::kCascade, batch, group);
  p.levels = {{16, 0, {batch}, {shared}},
              {16, 0, std::vector<int>(static_cast<size_t>(batch), 1),
               std::vector<int>(static_cast<size_t>(batch), own)}};
  return p;
}

Problem merge(Family family, int states) {
  Problem p;
  p.family = family;
  p.batch = 2;
  p.num_states = states;
  p.lse_regime = LseRegime::kNormal;
  p.v = {Regime::kNormal, 0, 3};
  return p;
}

std::vector<Problem> small_cases(std::string_view kernel) {
  constexpr KvType kSame = KvType::kSame, kE4m3 = KvType::kE4m3;
  if (kernel == "paged_attention_v1")
    return {paged({150, 40}, 2), with(paged({70}, 9), 0, kSame, true),
            with(paged({150}, 2), 0, kE4m3, false), teams(paged({40, 20, 33, 7}, 2), 4)};
  if (kernel == "paged_attention_v2")
    return {paged({140, 40}, 2), with(paged({100}, 9), 3, kSame, false),
            with(paged({40, 0, 30}, 2), 0, kSame, true), with(paged({150}, 2), 2, kE4m3, false),
            paged({20, 30, 10, 70, 5, 9, 40, 1, 20, 33, 60, 8}, 2)};
  if (kernel == "tree_attention") return {tree(3, 1, kSame), tree(2, 2, kSame), tree(2, 1, kE4m3)};
  if (kernel == "cascade_attention")
    return {cascade(80, 40, 2, 2),
            cascade(80, 20, 3, 8),
            cascade(140, 20, 4, 8),
            teams(cascade(280, 9, 4, 8), 2),
            with(cascade(80, 20, 2, 2), 2, kSame, false),
            teams(cascade(40, 20, 8, 2), 2)};
  if (kernel == "merge_state") return {merge(Family::kMergeState, 2)};
  if (kernel == "merge_states")
    return {merge(Family::kMergeStates, 3), merge(Family::kMergeStates, 40)};
  return {};
}

std::string describe(const ScheduleInput &in) {
  return fmt::format("schedule {}, copies {}, seed {}, holds after {} points",
                     name_of(in.schedule.order), name_of(in.schedule.copies), in.schedule.seed,
                     fmt::join(in.holds, ", "));
}

} // namespace

ScheduleInput read_schedule(Input input, size_t subjects) {
  constexpr size_t kMaxHolds = 64;
  ByteReader in(input);
  ScheduleInput out;
  out.subject = in.byte() % subjects;
  const uint8_t kinds = in.byte();
  out.schedule.order = static_cast<BlockOrder>(kinds % 3);
  out.schedule.copies = static_cast<CopyTiming>(kinds / 3 % 3);
  out.schedule.seed = in.byte();
  out.schedule.seed |= static_cast<uint32_t>(in.byte()) << 8;
  while (!in.done() && out.holds.size() < kMaxHolds) {
    const uint32_t byte = in.byte();
    out.holds.push_back(((16 + byte % 16) << byte / 16) / 16);
  }
  return out;
}

ScheduleJudge::ScheduleJudge(const assay_plugin &plugin) {
  for (const assay_kernel &kernel : kernels_in(plugin)) {
    if (kernel.target != ASSAY_TARGET_SIMT) continue;
    for (Problem &p : small_cases(kernel.name))
      subjects_.push_back({&kernel, std::move(p), {}});
  }
}

std::string ScheduleJudge::check(Input input) {
  const ScheduleInput in = read_schedule(input, subjects_.size());
  Subject &subject = subjects_[in.subject];
  const auto wrong = [&](const CheckResult &result, const std::string &schedule) {
    return fmt::format("{} under {}: {}\n{}", subject.kernel->name, schedule, result.message,
                       format_problem(subject.problem));
  };
  if (!subject.first) {
    subject.first = run_problem(subject.problem, *make_simt_sut(*subject.kernel));
    if (!subject.first->ok()) return wrong(subject.first->check, "the default schedule");
  }
  // Only the run has this schedule: the fields of the case, seeds above all, stay.
  Tensors t = subject.first->before;
  t.problem.schedule = in.schedule;
  const Outcome run = run_tensors(std::move(t), *make_simt_sut(*subject.kernel, in.holds));
  if (!run.ok()) return wrong(run.check, describe(in));
  if (subject.kernel->determinism == ASSAY_DETERMINISM_NONE) return "";
  const CheckResult same = same_bits(subject.first->after, run.after, "the default schedule's run");
  return same.passed() ? "" : wrong(same, describe(in));
}

} // namespace assay::fuzz
