// SPDX-License-Identifier: Apache-2.0
// Ordinary draws for the kernels of corpus/mutants.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "corpus/mutants/mutants.h"
#include "properties/case/directed.h"
#include "properties/case/hash.h"
#include "properties/run/draw.h"
#include "properties/run/requirements.h"
#include "properties/run/runner.h"
#include "properties/sut/sut.h"

namespace assay {

/// corpus/mutants/CMakeLists.txt.
inline bool is_instantiated(const Problem &p) {
  const bool bf16 = p.dtype == Dtype::kBf16;
  if (p.kv == KvType::kSame) return bf16 && p.head_dim != 128;
  return p.kv == KvType::kE4m3 ? bf16 && p.head_dim == 64 : !bf16 && p.head_dim == 128;
}

/// Draw `index`, moved into what the mutant build instantiates.
inline Problem draw_mutant_case(const Property &property, const assay_kernel &kernel,
                                uint64_t index, bool aim = false) {
  RunnerOptions options;
  options.seed = 20261120;
  Problem p = draw_case(property, kernel, options, index);
  if (aim) p = aimed(p, options.limits, hash_values(index, p.v.seed));
  if (is_attention(p) && !is_instantiated(p)) {
    p.dtype = Dtype::kBf16;
    p.head_dim = 64;
    if (is_fp8(p)) p.kv = KvType::kE4m3;
  }
  return p;
}

/// A drawn case that a property rejects, or why there is none.
struct DrawnFailure {
  const Property *property = nullptr; ///< null: nothing failed
  Problem problem;
  std::string message;
  uint64_t index = 0; ///< index among the property's draws
  int cases = 0;      ///< decided, this one included
};

/// Which drawn cases are tried. `plain` leaves the features of cases out; `aim` makes every
/// second case, of paged ones every eighth, an aimed one (properties/case/directed.h).
struct DrawOptions {
  bool plain = false, aim = false;
};

/// Draw `index` of a property: what it rejects, or a DrawnFailure without a property.
inline DrawnFailure failure_at(const Property &property, const assay_kernel &kernel, Sut &sut,
                               uint64_t index, const DrawOptions &options) {
  const uint64_t one_in = kernel.family == ASSAY_FAMILY_PAGED ? 8 : 2;
  DrawnFailure out;
  out.index = index;
  out.problem = draw_mutant_case(property, kernel, index, options.aim && index % one_in == 1);
  if (options.plain) out.problem = without_features(out.problem);
  if (!problem_error(out.problem, full_limits()).empty()) return out;
  bool threw = false;
  const CheckResult result = checked(property, out.problem, sut, &threw);
  if (result.kind != CheckResult::Kind::kDiscard) out.cases = 1;
  if (!threw && !result.failed()) return out;
  out.property = &property;
  out.message = std::string(property.name) + (threw ? " threw: " : ": ") + result.message;
  return out;
}

/// The kernel on the executor with scores replayed; `isolate`: a mutant that ends its process has
/// failed.
inline std::unique_ptr<Sut> mutant_sut(const assay_kernel &kernel, bool isolate) {
  std::unique_ptr<Sut> sut = isolate ? make_process_sut(kernel) : make_simt_sut(kernel);
  sut->set_replays_scores(true);
  return sut;
}

/// The first failure over all properties (or only `only`) in the order of a run: a property has as
/// many cases a round as its weight.
inline DrawnFailure first_failure(const assay_kernel &kernel, Sut &sut, int rounds,
                                  const DrawOptions &options = {}, const Property *only = nullptr) {
  int cases = 0;
  for (int round = 0; round < rounds; ++round)
    for (const Property &property : properties()) {
      if (!applies(property, kernel) || (only != nullptr && only != &property)) continue;
      for (int i = round * property.weight; i < (round + 1) * property.weight; ++i) {
        DrawnFailure failure = failure_at(property, kernel, sut, i, options);
        cases += failure.cases;
        failure.cases = cases;
        if (failure.property != nullptr) return failure;
      }
    }
  DrawnFailure none;
  none.cases = cases;
  return none;
}

} // namespace assay
