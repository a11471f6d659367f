// SPDX-License-Identifier: Apache-2.0
#include "fuzz/problem_checks.h"

#include "properties/case_text.h"
#include "properties/codec.h"
#include "properties/runner.h"
#include "properties/sut/sut.h"

namespace assay::fuzz {
namespace {

constexpr int kCheap = 2; // kernel runs per check

std::string check_one(const Property &property, const assay_kernel &kernel, const Problem &p) {
  auto sut = make_simt_sut(kernel);
  bool threw = false;
  const CheckResult result = checked(property, p, *sut, &threw);
  if (!threw && (result.passed() || result.kind == CheckResult::Kind::kDiscard)) return "";
  Case c;
  c.kernel = kernel.name;
  c.property = property.name;
  c.target = "simt";
  c.note = result.message;
  c.problem = p;
  return std::string(property.name) + " on " + kernel.name + ": " + result.message + "\n" +
         result.detail + "save as a .case for `assay shrink` and `assay replay`:\n" +
         format_case(c);
}

} // namespace

std::string check_problem_with(const assay_plugin &plugin, Input input) {
  const Problem p = decode(input, fuzz_limits());
  for (const Property &property : properties()) // within_budget is the first
    for (int i = 0; i < plugin.num_kernels; ++i) {
      const assay_kernel &kernel = plugin.kernels[i];
      const bool fits = kernel.target == ASSAY_TARGET_SIMT &&
                        kernel.family == static_cast<assay_family>(p.family) &&
                        property.cost <= kCheap && applies(property, kernel);
      if (!fits) continue;
      if (std::string e = check_one(property, kernel, p); !e.empty()) return e;
    }
  return "";
}

} // namespace assay::fuzz
