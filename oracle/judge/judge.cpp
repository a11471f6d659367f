// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/judge.h"

#include <numeric>
#include <stdexcept>
#include <string>

#include "oracle/judge/certify.h"

namespace assay::oracle {
namespace {

RowReference reference_of(const RowProblem &problem) { return attention_row(problem); }
MergeReference reference_of(const MergeProblem &problem) { return merge_row(problem); }

size_t keys_of(const AttentionReader &reader) { return reader.keys().size(); }
size_t keys_of(const MergeReader &) { return 0; }

void require_certified(const Certification &certification, int row, int head) {
  if (certification.misses > 0)
    throw std::logic_error("oracle: row " + std::to_string(row) + " head " + std::to_string(head) +
                           " " + certification.first_miss);
}

/// Takes the report of one row into that of the call, and certifies the row when it is its turn.
class Collector {
public:
  explicit Collector(const CertifySample &sample) : sample_(sample) {}

  template <class Certify>
  void add(const Report &row, int index, int head, size_t keys, Certify certify) {
    const bool first_finding =
        row.verdict != Verdict::kInside && report_.verdict == Verdict::kInside;
    report_.merge(row);
    if (!sample_.row || !(first_finding || sample_.row(index, head, keys))) return;
    require_certified(certify(sample_.dims(index, head)), index, head);
    ++report_.certified_rows;
  }

  const Report &report() const { return report_; }

private:
  const CertifySample &sample_;
  Report report_;
};

/// Judges one (row, head) and hands its report on, with what certifies it.
template <class Reader, class Take>
void judge_with(Reader &reader, const RowOutputs &out, const CallOutputs &outputs,
                const Memory &memory, int row, int head, Take take) {
  const auto &problem = reader.problem(row, head);
  const auto reference = reference_of(problem);
  const Written got = read_outputs(out, outputs, memory, row, head);
  const Report report =
      judge_row(problem, reference, got.o.data(), got.has_lse ? &got.lse : nullptr, row, head);
  take(report, [&](const std::vector<int> &dims) { return certify_row(problem, reference, dims); });
}

} // namespace

Report judge_some(const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
                  std::span<const int> chosen, const CertifySample &certify, const Memory &memory) {
  return with_reader(rows, model, memory, [&](auto &reader, const RowOutputs &out) {
    Collector all(certify);
    for (int row : chosen)
      for (int head = 0; head < out.heads; ++head)
        judge_with(reader, out, outputs, memory, row, head,
                   [&](const Report &report, const auto &certified) {
                     all.add(report, row, head, keys_of(reader), certified);
                   });
    return all.report();
  });
}

Report judge_call(const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
                  const CertifySample &certify, const Memory &memory) {
  std::vector<int> all(static_cast<size_t>(outputs_of(rows).rows()));
  std::iota(all.begin(), all.end(), 0);
  return judge_some(rows, outputs, model, all, certify, memory);
}

void judge_pairs(const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
                 std::span<const RowHead> chosen, const CertifySample &certify,
                 const std::function<void(const RowHead &, const Report &)> &each,
                 const Memory &memory) {
  bool found = false;
  with_reader(rows, model, memory, [&](auto &reader, const RowOutputs &out) {
    for (const RowHead &pair : chosen)
      judge_with(reader, out, outputs, memory, pair.row, pair.head,
                 [&](Report report, const auto &certified) {
                   const bool first_finding = !found && report.verdict != Verdict::kInside;
                   found = found || first_finding;
                   if (certify.row &&
                       (first_finding || certify.row(pair.row, pair.head, keys_of(reader)))) {
                     require_certified(certified(certify.dims(pair.row, pair.head)), pair.row,
                                       pair.head);
                     ++report.certified_rows;
                   }
                   each(pair, report);
                 });
  });
}

Report judge_one(const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
                 int row, int head, const Memory &memory) {
  return with_reader(rows, model, memory, [&](auto &reader, const RowOutputs &out) {
    Report one;
    judge_with(reader, out, outputs, memory, row, head,
               [&](const Report &report, const auto &) { one = report; });
    return one;
  });
}

} // namespace assay::oracle
