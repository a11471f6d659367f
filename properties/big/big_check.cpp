// SPDX-License-Identifier: Apache-2.0
#include "properties/big/big_check.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "oracle/judge/key_order.h"
#include "oracle/rows/build.h"
#include "properties/call/materialise.h"
#include "properties/call/params.h"
#include "properties/relate/budget.h"

namespace assay {
namespace {

constexpr size_t kMostOnHost = 64; // open rows that are decided; each may be a finding

using oracle::RowHead;

/// The call's memory: all but the cache comes from the host.
class BigCall {
public:
  BigCall(const Problem &p, const assay_kernel &kernel, Machine &machine)
      : kernel_(kernel), machine_(machine), t_(materialise(p, {.cache_contents = false})) {
    require_room();
    for (size_t i = 0; i < t_.buffers.size(); ++i) {
      const Buffer &b = t_.buffers[i];
      const size_t bytes = is_cache(i) ? cache_bytes(i) : b.bytes.size();
      auto *at = static_cast<std::byte *>(machine_.allocate(bytes + b.offset)) + b.offset;
      if (!is_cache(i) && bytes > 0) machine_.copy(at, b.bytes.data(), bytes);
      addresses_.push_back(at);
    }
    fill(true);
    fill(false);
    machine_.finish();
  }

  /// None: it ran.
  std::optional<CheckResult> run() {
    AbiParams params = make_params(t_, addresses_, machine_.target(), nullptr);
    uint64_t bytes = 0;
    if (kernel_.workspace_size != nullptr)
      if (assay_status status = kernel_.workspace_size(params.get(), &bytes))
        return refused(status);
    params.set_workspace(machine_.allocate(std::max<uint64_t>(bytes, 16)), bytes);
    if (assay_status status = kernel_.supports(params.get())) return refused(status);
    if (assay_status status = kernel_.run(params.get())) return refused(status);
    try {
      machine_.finish();
    } catch (const std::runtime_error &e) {
      return CheckResult::fail(std::string("hazard: ") + e.what(),
                               plain_symptom(Symptom::Kind::kHazard, e.what()));
    }
    return std::nullopt;
  }

  CheckResult judge() {
    const AbiParams seen = make_params(t_, inputs_here(), machine_.target(), nullptr);
    const oracle::CallRows rows = oracle::rows_of(kernel_.family, seen.get());
    const auto &attention = std::get<oracle::AttentionRows>(rows);
    const oracle::KernelModel model{.arithmetic = kernel_.arithmetic,
                                    .order = oracle::ask_key_order(kernel_, seen.get())};
    if (const std::string why = machine_.refuses(attention, model); !why.empty())
      return CheckResult::discard("its outputs are not judged on the GPU: " + why);
    const oracle::CallOutputs outputs{seen.paged.out, seen.paged.lse};
    const oracle::TierReport there =
        machine_.judge(attention, outputs, model, {.first_tier_alone = true});
    return decided(rows, outputs, model, there);
  }

private:
  const CacheView &cache() const { return t_.caches[0]; }
  bool is_cache(size_t buffer) const {
    return static_cast<int>(buffer) == cache().k || static_cast<int>(buffer) == cache().v;
  }
  size_t cache_bytes(size_t buffer) const {
    const bool keys = static_cast<int>(buffer) == cache().k;
    return static_cast<size_t>(std::max(1, cache().pool_pages)) *
           static_cast<size_t>((keys ? cache().k_page : cache().v_page) * cache().size);
  }
  void require_room() const {
    const uint64_t bytes =
        cache_bytes(static_cast<size_t>(cache().k)) + cache_bytes(static_cast<size_t>(cache().v));
    if (const uint64_t free = machine_.free_bytes(); bytes > free / 10 * 9)
      throw std::runtime_error(fmt::format("K and V have {:.1f} GB, {:.1f} GB are free",
                                           static_cast<double>(bytes) * 1e-9,
                                           static_cast<double>(free) * 1e-9));
  }

  void fill(bool keys) {
    const std::vector<PageOwner> owners = page_owners(t_.problem, cache());
    void *there = machine_.allocate(owners.size() * sizeof(PageOwner));
    machine_.copy(there, owners.data(), owners.size() * sizeof(PageOwner));
    CacheFill fill = cache_fill(t_.problem, cache(), keys);
    fill.owners = static_cast<const PageOwner *>(there);
    fill.to =
        static_cast<std::byte *>(addresses_[static_cast<size_t>(keys ? cache().k : cache().v)]);
    machine_.fill_cache(fill);
  }

  /// Small inputs in this process; the cache, the queries and the outputs where the kernel sees
  /// them.
  std::vector<void *> inputs_here() {
    std::vector<void *> out = addresses_;
    for (size_t i = 0; i < out.size(); ++i)
      if (!is_cache(i) && static_cast<int>(i) != t_.q.buffer && !t_.buffers[i].output)
        out[i] = t_.buffers[i].bytes.data();
    return out;
  }

  CheckResult refused(assay_status status) const {
    const char *said = kernel_.last_error != nullptr ? kernel_.last_error() : nullptr;
    const std::string message = said != nullptr ? said : "";
    if (status == ASSAY_UNSUPPORTED || status == ASSAY_CAPACITY_EXCEEDED) {
      CheckResult out = CheckResult::discard("unsupported: " + message);
      out.unsupported = true;
      return out;
    }
    return CheckResult::fail("refused a valid call: " + message,
                             plain_symptom(Symptom::Kind::kRefused, message));
  }

  /// Some rows that are inside, too: the host must agree, but for what it sees of a row as one.
  static std::vector<RowHead> sample_of(const oracle::RowOutputs &out) {
    std::vector<RowHead> pairs;
    for (int i = 0; i < 4; ++i)
      pairs.push_back(
          {static_cast<int>(int64_t{i} * (out.rows() - 1) / 3), (i * 5 + 1) % out.heads});
    return pairs;
  }

  CheckResult decided(const oracle::CallRows &rows, const oracle::CallOutputs &outputs,
                      const oracle::KernelModel &model, const oracle::TierReport &there) {
    const oracle::RowOutputs &out = oracle::outputs_of(rows);
    const auto row_elements = static_cast<uint64_t>(out.dims + (outputs.lse != nullptr ? 1 : 0));
    const std::vector<RowHead> &open = there.doubtful;
    oracle::Report report = there.decided;
    const uint64_t unclaimed = (there.open.size() - open.size()) * row_elements;
    report.elements += unclaimed;
    report.no_claim += unclaimed;
    const oracle::Memory memory = machine_.memory();
    for (size_t i = 0; i < std::min(open.size(), kMostOnHost); ++i)
      report.merge(oracle::judge_one(rows, outputs, model, open[i].row, open[i].head, memory));
    if (open.empty() && out.rows() > 0) require_agreement(rows, outputs, model, memory, report);
    CheckResult result = result_of(report);
    if (open.size() > kMostOnHost)
      result.detail += fmt::format("{} more rows are open\n", open.size() - kMostOnHost);
    if (result.passed())
      result.message = fmt::format("{} outputs judged in {:.1f} ms, {} rows left to the host",
                                   there.decided.claimed, there.device_ms, open.size());
    return result;
  }

  static void require_agreement(const oracle::CallRows &rows, const oracle::CallOutputs &outputs,
                                const oracle::KernelModel &model, const oracle::Memory &memory,
                                oracle::Report &report) {
    for (const RowHead &at : sample_of(oracle::outputs_of(rows))) {
      const oracle::Report host = oracle::judge_one(rows, outputs, {.arithmetic = model.arithmetic},
                                                    at.row, at.head, memory);
      if (host.verdict != oracle::Verdict::kInside && host.worst.dim != oracle::ElementReport::kRow)
        throw std::logic_error(
            fmt::format("oracle: row {} head {} is inside on the GPU alone", at.row, at.head));
      report.add_whole_rows(host);
    }
  }

  const assay_kernel &kernel_;
  Machine &machine_;
  Tensors t_;
  std::vector<void *> addresses_;
};

} // namespace

CheckResult big_within_budget(const Problem &p, const assay_kernel &kernel, Machine &machine) {
  BigCall call(p, kernel, machine);
  if (std::optional<CheckResult> early = call.run()) return *early;
  return call.judge();
}

} // namespace assay
