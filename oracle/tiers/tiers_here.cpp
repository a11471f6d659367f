// SPDX-License-Identifier: Apache-2.0
// The GPU's text of every tier and of merges, run by one thread.
#include <stdexcept>

#include "oracle/tiers/merges_body.h"
#include "oracle/tiers/tiers_body.h"

namespace assay::oracle {
namespace {

struct OneThread {
  int rank() const { return 0; }
  int size() const { return 1; }
  void sync() const {}
  double most(double x) const { return x; }
  double sum(double x) const { return x; }
  bool any(bool flag) const { return flag; }
  void count(unsigned long long *at) const { ++*at; }
};

/// What the text leaves, and where.
class Results {
public:
  Results(int64_t pairs, int dims, bool elements)
      : rows(static_cast<size_t>(pairs)), budgets(BudgetSizes::kCounts) {
    constexpr BulkElement kNone{0.0, 0.0, NAN};
    if (elements)
      exported.assign(rows.size() * (static_cast<size_t>(dims) + 1), {kNone, kNone, kNone});
  }

  template <class Call>
  void pass_to(Call &call) {
    static_assert(sizeof(uint64_t) == sizeof(unsigned long long));
    call.rows = rows.data();
    call.budgets = reinterpret_cast<unsigned long long *>(budgets.data());
    if (!exported.empty()) call.elements = exported.data()->data();
  }
  TierReport report(const RowOutputs &out, bool has_lse) {
    TierReport report = report_of(out, has_lse, std::move(rows), budgets);
    report.elements = std::move(exported);
    return report;
  }

  std::vector<TierRow> rows;
  std::vector<uint64_t> budgets;
  std::vector<std::array<BulkElement, 3>> exported;
};

const void *in_place(const void *from, size_t) { return from; }

} // namespace

TierReport judge_tiers_here(const AttentionRows &rows, const CallOutputs &outputs,
                            const KernelModel &model, bool elements) {
  if (const std::string reason = tiers_refuse(rows, model); !reason.empty())
    throw std::invalid_argument("tiers: " + reason);
  const bulk::TierArrays arrays = bulk::arrays_of(rows, model);
  bulk::TierCall call = bulk::make_tier_call(rows, outputs, model, arrays, in_place);
  Results results(call.pairs, rows.out.dims, elements);
  results.pass_to(call);
  std::vector<unsigned char> scratch(static_cast<size_t>(call.scratch.bytes()));
  call.scratch_base = scratch.data();
  const auto memory = std::make_unique<bulk::TeamMemory>();
  OneThread team;
  bulk::RowBody<OneThread> body(call, team, *memory, 0);
  for (int64_t pair = 0; pair < call.pairs; ++pair)
    body.run(pair);
  return results.report(rows.out, outputs.lse != nullptr);
}

TierReport judge_merges_here(const MergeRows &rows, const CallOutputs &outputs,
                             const KernelModel &model, bool elements) {
  if (const std::string reason = merges_refuse(rows); !reason.empty())
    throw std::invalid_argument("merges: " + reason);
  bulk::MergeCall call = bulk::make_merge_call(rows, outputs, model, in_place);
  Results results(call.pairs, rows.out.dims, elements);
  results.pass_to(call);
  std::vector<double> scratch(static_cast<size_t>(2 * call.most_states) + 1);
  call.scratch = scratch.data();
  OneThread team;
  bulk::MergeBody<OneThread> body(call, team, 0);
  for (int64_t pair = 0; pair < call.pairs; ++pair)
    body.run(pair);
  return results.report(rows.out, outputs.lse != nullptr);
}

} // namespace assay::oracle
