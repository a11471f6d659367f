// SPDX-License-Identifier: Apache-2.0
// Random correct kernels, call after call, judged by the bodies that a GPU runs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "oracle/device/tiers.h"
#include "oracle/tests/emulated_call.h"

namespace assay::oracle::test {

/// The text that a GPU runs, there or on this processor. Not for two threads at once.
class Bodies {
public:
  enum class Where { kGpu, kHere };
  explicit Bodies(Where where);
  /// T0 and the LSE without an order of keys.
  TierReport first(const EmulatedCall &call, bool elements = false);
  /// Every tier, with its order.
  TierReport every(const EmulatedCall &call, bool elements = false);

private:
  TierReport judge(const EmulatedCall &call, const KernelModel &model, const JudgeOptions &options);
  std::unique_ptr<TierJudge> tiers_; ///< null: here
};

struct CallTally {
  uint64_t calls = 0, refused = 0, rows = 0;
  uint64_t emulated = 0;          ///< outputs and LSEs
  uint64_t judged = 0;            ///< certainly inside, once by the first tier, once by all
  uint64_t wide = 0, formats = 0; ///< those of kernels with wide errors, with formats
  uint64_t host_rows = 0;         ///< left to the host
  uint64_t no_claim = 0, violations = 0, undecided = 0;
  double t0 = 0, t1 = 0, t2 = 0, lse = 0, row = 0; ///< largest |error| / bound
  uint64_t near = 0;   ///< rows without an order that need more directions
  uint64_t as_one = 0; ///< rows as one that were held against the host's
  // Budgets over the host's, of the calls that were compared; what disagrees.
  uint64_t compared = 0, apart = 0;
  uint64_t narrower = 0, wider = 0; ///< budgets by more than 1e-6 below, 1e-3 above the host's
  uint64_t fewer_claims = 0;        ///< nothing is said where the host does: no mistake
  double least_first = INFINITY, most_first = 0, least_tiers = INFINITY, most_tiers = 0;
  std::string widest_first; ///< where most_first was seen; empty: it is not above 1.001
  std::map<std::string, std::vector<std::string>> wrong; ///< by kind, the first lines of each

  void add(const CallTally &other);
  bool sound() const { return violations == 0 && undecided == 0 && apart == 0; }
};

/// Call `number` of a seed. `compare`: hold every bound against the host's.
void judge_drawn_call(Bodies &bodies, uint64_t seed, uint64_t number, bool compare,
                      CallTally &tally);

} // namespace assay::oracle::test
