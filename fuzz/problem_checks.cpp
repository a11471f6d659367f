// SPDX-License-Identifier: Apache-2.0
#include "fuzz/problem_checks.h"

#include <cassert>
#include <vector>

#include "fuzz/cases/case_judge.h"
#include "properties/run/requirements.h"
#include "properties/sut/sut.h"

namespace assay::fuzz {
namespace {

constexpr int kCheap = 2; // kernel runs per check

/// Those that apply and are cheap; within_budget, the first of the registry, leads.
std::vector<const Property *> cheap_properties(const assay_kernel &kernel) {
  std::vector<const Property *> cheap;
  for (const Property &property : properties())
    if (property.cost <= kCheap && applies(property, kernel)) cheap.push_back(&property);
  assert(cheap.size() > 1 && cheap[0] == find_property("within_budget"));
  return cheap;
}

} // namespace

const CaseFormat &problem_format() {
  static const CaseFormat format = {.limits = fuzz_limits(), .family = {}};
  return format;
}

std::string check_problem_with(const assay_plugin &plugin, Input input, bool replay_scores) {
  const auto [pick, p] = read_case(problem_format(), input);
  for (const assay_kernel *kernel : simt_kernels(plugin, p.family)) {
    const auto cheap = cheap_properties(*kernel);
    for (const Property *property : {cheap[0], cheap[1 + pick % (cheap.size() - 1)]}) {
      const auto sut = make_simt_sut(*kernel);
      sut->set_replays_scores(replay_scores);
      CheckResult result;
      if (std::string e = violation(*property, p, *sut, result); !e.empty()) return e;
    }
  }
  return "";
}

} // namespace assay::fuzz
