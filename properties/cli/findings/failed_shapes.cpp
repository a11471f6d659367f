// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/findings/failed_shapes.h"

#include <algorithm>

#include "properties/case/shrink.h"
#include "properties/run/checked.h"

namespace assay {
namespace {

bool is_shape(const KeptFindings &kept, const KeptResult &r) {
  return std::any_of(kept.files.begin(), kept.files.end(),
                     [&](const KeptFile &file) { return file.shape && file.path == r.path; });
}

Finding shrunk(const Session &session, const KeptResult &r, const std::atomic<bool> &stop) {
  const PropertyRun &failed = *r.found;
  Finding f = failed.first[0];
  f.shape = r.path;
  const auto sut = session.sut(*failed.kernel);
  const auto fails = [&](const Problem &p) {
    return checked(*failed.property, p, *sut, nullptr).failed();
  };
  f.stats = {};
  f.shrunk = shrink(f.drawn, fails, {.checks = 1500, .seconds = 20, .stop = &stop}, &f.stats);
  const CheckResult again = checked(*failed.property, f.shrunk, *sut, nullptr);
  if (again.failed())
    f.result = again;
  else
    f.shrunk = f.drawn; // it fails now and then
  return f;
}

} // namespace

void shrink_failed_shapes(const Session &session, KeptFindings &kept, RunSummary &summary,
                          FindingLog &log, const std::atomic<bool> &stop) {
  for (KeptResult &r : kept.results) {
    if (!r.found || !r.same_as.empty() || !is_shape(kept, r)) continue;
    const auto run =
        std::find_if(summary.runs.begin(), summary.runs.end(), [&](const PropertyRun &one) {
          return one.kernel == r.found->kernel && one.property == r.found->property;
        });
    if (run == summary.runs.end() || !run->first.empty()) continue; // grouped with what was drawn
    run->first.push_back(shrunk(session, r, stop));
    ++run->findings;
    ++run->cases;
    r.same_as = log.found(*run);
  }
}

} // namespace assay
