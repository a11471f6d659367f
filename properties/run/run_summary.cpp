// SPDX-License-Identifier: Apache-2.0
#include "properties/run/run_summary.h"

#include <algorithm>

namespace assay {

void ErrorHistogram::add(double ratio) {
  if (!(ratio > 0)) return;
  // A ratio of exactly 1 is still within.
  ++cases[ratio > 1 ? kBins - 1 : std::min(static_cast<int>(ratio * (kBins - 1)), kBins - 2)];
}

void PropertyRun::add_case(const Judged &one) {
  add(one);
  errors_o.add(one.ratio_o());
  errors_lse.add(one.ratio_lse);
}

int RunSummary::cases() const {
  int n = 0;
  for (const PropertyRun &r : runs)
    n += r.cases;
  return n;
}
int RunSummary::findings() const {
  int n = 0;
  for (const PropertyRun &r : runs)
    n += r.findings;
  return n;
}
int RunSummary::undecided() const {
  int n = 0;
  for (const PropertyRun &r : runs)
    n += r.undecided;
  return n;
}
uint64_t RunSummary::outputs() const {
  uint64_t n = 0;
  for (const PropertyRun &r : runs)
    n += r.outputs;
  return n;
}
uint64_t RunSummary::certified_rows() const {
  uint64_t n = 0;
  for (const PropertyRun &r : runs)
    n += r.certified_rows;
  return n;
}
int RunSummary::unstarted() const {
  return static_cast<int>(
      std::count_if(runs.begin(), runs.end(), [](const PropertyRun &r) { return !r.started; }));
}
bool RunSummary::incomplete() const {
  for (const PropertyRun &r : runs)
    if (!r.started || r.hollow() || !r.missing.empty() || !r.never_asked.empty() ||
        !r.harness_error.empty() || idle(r.kernel) || declared_away(r.kernel))
      return true;
  return runs.empty();
}
bool RunSummary::declared_away(const assay_kernel *kernel) const {
  uint64_t judged = 0, away = 0;
  for (const PropertyRun &r : runs) {
    if (r.kernel != kernel) continue;
    judged += r.outputs;
    away += r.declared_away;
  }
  return away * 100 > judged + away;
}
bool RunSummary::idle(const assay_kernel *kernel) const {
  return std::none_of(runs.begin(), runs.end(),
                      [&](const PropertyRun &r) { return r.kernel == kernel && r.cases > 0; });
}

} // namespace assay
