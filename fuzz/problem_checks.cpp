// SPDX-License-Identifier: Apache-2.0
#include "fuzz/problem_checks.h"

#include <cassert>
#include <vector>

#include "fuzz/byte_reader.h"
#include "properties/case/case_text.h"
#include "properties/case/codec.h"
#include "properties/run/checked.h"
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

std::string check_one(const Property &property, const assay_kernel &kernel, const Problem &p,
                      bool replay_scores) {
  auto sut = make_simt_sut(kernel);
  sut->set_replays_scores(replay_scores);
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

std::string check_problem_with(const assay_plugin &plugin, Input input, bool replay_scores) {
  ByteReader in(input);
  const uint8_t pick = in.byte();
  const Problem p = decode(in.rest(), fuzz_limits());
  for (int i = 0; i < plugin.num_kernels; ++i) {
    const assay_kernel &kernel = plugin.kernels[i];
    if (kernel.target != ASSAY_TARGET_SIMT || kernel.family != static_cast<assay_family>(p.family))
      continue;
    const auto cheap = cheap_properties(kernel);
    if (std::string e = check_one(*cheap[0], kernel, p, replay_scores); !e.empty()) return e;
    const auto &other = *cheap[1 + pick % (cheap.size() - 1)];
    if (std::string e = check_one(other, kernel, p, replay_scores); !e.empty()) return e;
  }
  return "";
}

} // namespace assay::fuzz
