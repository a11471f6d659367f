// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/judge.h"

#include <stdexcept>
#include <string>

#include "oracle/exact/dtype.h"
#include "oracle/judge/certify.h"

namespace assay::oracle {
namespace {

template <class Params>
void require_heads(const Params &params) {
  if (params.num_kv_heads <= 0 || params.num_qo_heads % params.num_kv_heads != 0) {
    throw std::invalid_argument("oracle: num_qo_heads is not a multiple of num_kv_heads");
  }
}

int query_rows(const assay_paged_params &p) { return p.batch * p.q_len; }
int query_rows(const assay_cascade_params &p) { return p.batch; }

int64_t o_at(const assay_paged_params &p, int row, int head) {
  return row / p.q_len * p.o_stride_batch + row % p.q_len * p.o_stride_token +
         head * p.o_stride_head;
}
int64_t o_at(const assay_cascade_params &p, int row, int head) {
  return row * p.o_stride_batch + head * p.o_stride_head;
}
template <class Params>
int64_t o_at(const Params &p, int row, int head) {
  return row * p.o_stride_row + head * p.o_stride_head;
}

int64_t lse_at(const assay_paged_params &p, int row, int head) {
  return row / p.q_len * p.lse_stride_batch + row % p.q_len * p.lse_stride_token +
         head * p.lse_stride_head;
}
int64_t lse_at(const assay_cascade_params &p, int row, int head) {
  return row * p.lse_stride_batch + head * p.lse_stride_head;
}
template <class Params>
int64_t lse_at(const Params &p, int row, int head) {
  return row * p.lse_stride_row + head * p.lse_stride_head;
}

/// What was written for one (row, head).
struct Written {
  std::vector<float> o;
  const float *lse;
};

template <class Params>
Written read_outputs(const Params &params, const CallOutputs &outputs, int row, int head) {
  Written out{std::vector<float>(static_cast<size_t>(params.head_dim)), nullptr};
  const int64_t at = o_at(params, row, head);
  for (int i = 0; i < params.head_dim; ++i)
    out.o[static_cast<size_t>(i)] = load_element(params.dtype, outputs.o, at + i);
  if (outputs.lse != nullptr) out.lse = outputs.lse + lse_at(params, row, head);
  return out;
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
    const Certification certification = certify(sample_.dims(index, head));
    if (certification.misses > 0)
      throw std::logic_error("oracle: row " + std::to_string(index) + " head " +
                             std::to_string(head) + " " + certification.first_miss);
    ++report_.certified_rows;
  }

  const Report &report() const { return report_; }

private:
  const CertifySample &sample_;
  Report report_;
};

template <class Params>
Report judge_attention(const Params &params, const CallOutputs &outputs, const KernelModel &model,
                       const CertifySample &sample) {
  require_heads(params);
  const int group = params.num_qo_heads / params.num_kv_heads;
  Collector all(sample);
  for (int row = 0; row < query_rows(params); ++row)
    for (int kv_head = 0; kv_head < params.num_kv_heads; ++kv_head) {
      GroupKeys keys(params, row, kv_head);
      for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        const HeadRow head_row(params, model, keys, row, head);
        const RowProblem &problem = head_row.problem();
        const RowReference reference = attention_row(problem);
        const Written got = read_outputs(params, outputs, row, head);
        const Report report = judge_row(problem, reference, got.o.data(), got.lse, row, head);
        all.add(report, row, head, keys.plain().size(), [&](const std::vector<int> &dims) {
          return certify_row(problem, reference, dims);
        });
      }
    }
  return all.report();
}

template <class Params>
Report judge_merges(const Params &params, const CallOutputs &outputs, const KernelModel &model,
                    const CertifySample &sample) {
  Collector all(sample);
  for (int row = 0; row < params.num_rows; ++row)
    for (int head = 0; head < params.num_heads; ++head) {
      const MergeProblem problem = merge_problem(params, model.arithmetic, row, head);
      const MergeReference reference = merge_row(problem);
      const Written got = read_outputs(params, outputs, row, head);
      const Report report = judge_merge(problem, reference, got.o.data(), got.lse, row, head);
      all.add(report, row, head, 0, [&](const std::vector<int> &dims) {
        return certify_merge(problem, reference, dims);
      });
    }
  return all.report();
}

} // namespace

Report judge_call(const assay_paged_params &params, const CallOutputs &outputs,
                  const KernelModel &model, const CertifySample &certify) {
  return judge_attention(params, outputs, model, certify);
}
Report judge_call(const assay_cascade_params &params, const CallOutputs &outputs,
                  const KernelModel &model, const CertifySample &certify) {
  return judge_attention(params, outputs, model, certify);
}
Report judge_call(const assay_merge_state_params &params, const CallOutputs &outputs,
                  const KernelModel &model, const CertifySample &certify) {
  return judge_merges(params, outputs, model, certify);
}
Report judge_call(const assay_merge_states_params &params, const CallOutputs &outputs,
                  const KernelModel &model, const CertifySample &certify) {
  return judge_merges(params, outputs, model, certify);
}

} // namespace assay::oracle
