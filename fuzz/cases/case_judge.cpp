// SPDX-License-Identifier: Apache-2.0
#include "fuzz/cases/case_judge.h"

#include <algorithm>
#include <cmath>

#include "fuzz/paths/feedback.h"
#include "kernels/abi/kernel_table.h"
#include "properties/case/case_text.h"
#include "properties/run/checked.h"

namespace assay::fuzz {
namespace {

/// Levels of what a run did, from small cases alone: sizes are theirs.
void tell(int form, const Problem &p, const CheckResult &result, Sut &sut) {
  constexpr int kTile = 32; // keys: of all kernels that cases of 64 dims run but the wide one
  begin_feedback(form);
  const auto length = [&](int keys) {
    note(Signal::kRemainder, keys % kTile * 2);
    note(Signal::kTiles, (keys + kTile - 1) / kTile);
  };
  for (const int keys : p.seq_lens)
    length(keys);
  for (const CascadeLevel &level : p.levels)
    for (const int keys : level.lens)
      length(keys);
  note(Signal::kErrorSum, error_level(std::max(result.ratio_t0, result.ratio_t1), 1));
  note(Signal::kErrorLse, error_level(result.ratio_lse, 1));
  const auto counters = sut.take_counters();
  for (const auto &[signal, name] :
       {std::pair{Signal::kProducts, "mma"}, {Signal::kArrivals, "atomics"}})
    if (const auto found = counters.find(name); found != counters.end())
      note(signal, 4 * std::log2(1.0 + static_cast<double>(found->second)));
}

} // namespace

const CaseFormat &paged_format() {
  static const CaseFormat format = {.limits = {.batch = 3,
                                               .kv_heads = 2,
                                               .group = 4,
                                               .keys = 288,
                                               .head_dim = 64,
                                               .page_size = 32,
                                               .splits = 4,
                                               .states = 2,
                                               .levels = 1,
                                               .slots = 512,
                                               .merge_values = 0},
                                    .family = Family::kPaged};
  return format;
}

const CaseFormat &cascade_format() {
  static const CaseFormat format = {.limits = {.batch = 4,
                                               .kv_heads = 2,
                                               .group = 8,
                                               .keys = 288,
                                               .head_dim = 64,
                                               .page_size = 32,
                                               .splits = 4,
                                               .states = 2,
                                               .levels = 3,
                                               .slots = 640,
                                               .merge_values = 0},
                                    .family = Family::kCascade};
  return format;
}

std::vector<const assay_kernel *> simt_kernels(const assay_plugin &plugin, Family family) {
  std::vector<const assay_kernel *> kernels;
  for (const assay_kernel &kernel : kernels_in(plugin))
    if (kernel.target == ASSAY_TARGET_SIMT && kernel.family == static_cast<assay_family>(family))
      kernels.push_back(&kernel);
  return kernels;
}

std::string violation(const Property &property, const Problem &p, Sut &sut, CheckResult &result) {
  bool threw = false;
  result = checked(property, p, sut, &threw);
  if (!threw && (result.passed() || result.kind == CheckResult::Kind::kDiscard)) return "";
  Case c;
  c.kernel = sut.kernel().name;
  c.property = property.name;
  c.target = "simt";
  c.note = result.message;
  c.problem = p;
  return std::string(property.name) + " on " + sut.kernel().name + ": " + result.message + "\n" +
         result.detail + "save as a .case for `assay shrink` and `assay replay`:\n" +
         format_case(c);
}

std::string check_case_with(const assay_plugin &plugin, const CaseFormat &format, Input input) {
  static const Property &kProperty = *find_property("within_budget");
  const PickedCase picked = read_case(format, input);
  const auto kernels = simt_kernels(plugin, *format.family);
  const size_t number = picked.pick % kernels.size();
  const auto sut = make_simt_sut(*kernels[number]);
  CheckResult result;
  std::string wrong = violation(kProperty, picked.problem, *sut, result);
  tell(static_cast<int>(number), picked.problem, result, *sut);
  return wrong;
}

} // namespace assay::fuzz
