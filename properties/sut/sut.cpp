// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/sut.h"

#include <limits>
#include <optional>

#include <fmt/format.h>

#include "properties/call/limit_calls.h"
#include "properties/call/params.h"
#include "properties/case/classify.h"
#include "properties/sut/guard.h"

namespace assay {
namespace {

/// One violation per buffer: the first byte that changed although nothing may write it.
void report_changes(const Buffer &before, const Buffer &after, std::vector<Violation> &out) {
  size_t changed = 0, first = 0;
  for (size_t i = 0; i < before.bytes.size(); ++i) {
    if (before.bytes[i] == after.bytes[i] || (before.output && before.live[i])) continue;
    if (changed++ == 0) first = i;
  }
  if (changed == 0) return;
  using enum Violation::Kind;
  out.push_back({.kind = before.output ? kDeadOutput : kInput,
                 .buffer = before.name,
                 .first = first,
                 .count = changed,
                 .size = before.bytes.size()});
}

CallTraits traits_of(const assay_kernel &kernel, uint64_t scratch_bytes) {
  const bool splits = kernel.arithmetic.max_splits > 1;
  return {splits, kernel.plan_size != nullptr, scratch_bytes,
          splits && kernel.batch_invariance != ASSAY_BATCH_NONE};
}

using Asked = WrongAnswer::Asked;
using Answer = WrongAnswer::Answer;

/// What is wrong with an answer about a call that is allowed, or is not, if something is.
std::optional<Answer> wrong_answer(assay_status status, bool allowed) {
  const bool refused = status == ASSAY_INVALID_ARGUMENT || status == ASSAY_CAPACITY_EXCEEDED;
  if (status == ASSAY_UNSUPPORTED || (allowed ? status == ASSAY_OK : refused)) return std::nullopt;
  if (status == ASSAY_OK) return Answer::kTaken;
  return refused ? Answer::kRefused : Answer::kNeither;
}

const char *in_words(Answer wrong) {
  if (wrong == Answer::kTaken) return "is not refused, and is beyond a limit";
  return wrong == Answer::kRefused ? "is refused, and is allowed"
                                   : "gets a status that says neither";
}

const char *in_words(Asked asked) {
  return asked == Asked::kPlan        ? ", asked for its plan,"
         : asked == Asked::kWorkspace ? ", asked for its workspace,"
                                      : "";
}

WrongAnswer accepted(const BadCall &call, Asked asked, const std::string &more) {
  return {.call = call.argument + ": " + name_of(call.kind),
          .asked = asked,
          .answer = Answer::kTaken,
          .text = call.what + more,
          .ended = {}};
}

/// A kernel gets query_start if it says that it knows it: to others the array means nothing.
bool knows_queries(const assay_kernel &kernel, const Tensors &t) {
  return kernel.ragged_queries != 0 || t.problem.query_tokens.empty();
}

/// A head_dim that the kernel refuses has no workspace and no plan.
void ask_sizes_of_other_head_dims(const assay_kernel &kernel, AbiParams &params,
                                  std::vector<WrongAnswer> &wrong) {
  if (params.family != Family::kPaged && params.family != Family::kCascade) return;
  int32_t &head_dim =
      params.family == Family::kPaged ? params.paged.head_dim : params.cascade.head_dim;
  const int32_t right = head_dim;
  const auto ask = [&](auto size, Asked asked, const char *what) {
    uint64_t bytes = 0;
    if (size == nullptr || size(params.get(), &bytes) != ASSAY_OK) return;
    const BadCall call{"head_dim", BadCall::Kind::kValue, fmt::format("head_dim is {}", head_dim)};
    wrong.push_back(
        accepted(call, asked, fmt::format(", which is refused when asked and has a {}", what)));
  };
  // Smaller ones, since those of the case allow strides that a larger one would not.
  for (const int32_t other : {32, 96, 160, 192}) {
    if (other >= right) break;
    head_dim = other;
    if (kernel.supports(params.get()) == ASSAY_OK) continue;
    ask(kernel.workspace_size, Asked::kWorkspace, "workspace");
    ask(kernel.plan_size, Asked::kPlan, "plan");
  }
  head_dim = right;
}

} // namespace

RunResult Sut::run(Tensors &t) {
  if (!knows_queries(kernel_, t)) {
    RunResult refused;
    refused.status = ASSAY_UNSUPPORTED;
    refused.message = "query_start is given, and the kernel does not declare ragged_queries";
    return refused;
  }
  std::vector<Buffer> before = t.buffers;
  RunResult result = execute(t);
  for (const auto &[name, count] : result.counters)
    counters_[name] += count;
  if (result.status == ASSAY_OK)
    for (std::string &name : classify(t.problem))
      classes_.insert(std::move(name));
  if (result.status != ASSAY_OK && result.hazards.empty()) {
    // Nothing may have been launched: outputs included.
    for (Buffer &b : before)
      b.output = false;
  }
  for (size_t i = 0; i < before.size(); ++i)
    report_changes(before[i], t.buffers[i], result.violations);
  return result;
}

std::shared_ptr<const oracle::KeyOrder> Sut::key_order(const Tensors &t) {
  if (kernel_.key_order == nullptr || !is_attention(t.problem)) return nullptr;
  AskedCall call{t.problem, {}};
  for (const CacheView &cache : t.caches)
    for (int buffer : {cache.table, cache.lens, cache.indptr})
      if (buffer >= 0) call.tables.push_back(t.buffers[buffer].bytes);
  if (asked_ == call) return order_;
  asked_.reset();
  order_ = ask_for_key_order(t);
  asked_ = std::move(call);
  return order_;
}

std::shared_ptr<const oracle::KeyOrder> Sut::ask_for_key_order(const Tensors &t) {
  return oracle::ask_key_order(kernel_, input_params(t).get());
}

std::vector<WrongAnswer> Sut::accepted_bad_calls(const Tensors &t) {
  Tensors copy = t; // a call must not write, but this one is not known to be right
  AbiParams params = make_params(copy, host_addresses(copy), kernel_.target, nullptr);
  uint64_t bytes = 0;
  if (kernel_.workspace_size != nullptr)
    if (kernel_.workspace_size(params.get(), &bytes) != ASSAY_OK) return {};
  GuardedBytes workspace(bytes);
  params.set_workspace(workspace.data(), bytes);
  if (kernel_.supports(params.get()) != ASSAY_OK) return {};
  std::vector<WrongAnswer> wrong;
  const auto ask = [&](const void *call, const BadCall &bad) {
    if (kernel_.supports(call) == ASSAY_OK)
      wrong.push_back(accepted(bad, Asked::kSupports, ""));
    else if (kernel_.run(call) == ASSAY_OK)
      wrong.push_back(accepted(bad, Asked::kRun, ", which is refused when asked and then run"));
  };
  for_each_bad_call(params, traits_of(kernel_, bytes),
                    [&](const BadCall &bad) { ask(params.get(), bad); });
  ask(nullptr, {"params", BadCall::Kind::kNull, "params null"});
  ask_sizes_of_other_head_dims(kernel_, params, wrong);
  return wrong;
}

std::vector<WrongAnswer> Sut::misjudged_limits(const Tensors &t) {
  Tensors copy = t;
  AbiParams params = make_params(copy, host_addresses(copy), kernel_.target, nullptr);
  alignas(16) char workspace[16];
  params.set_workspace(workspace, std::numeric_limits<uint64_t>::max());
  std::vector<WrongAnswer> misjudged;
  const auto judge = [&](const LimitedCall &call, Asked asked, assay_status status) {
    const std::optional<Answer> wrong = wrong_answer(status, call.allowed);
    if (!wrong) return;
    const std::string said = status == ASSAY_OK ? "" : ", " + std::string(last_message(kernel_));
    misjudged.push_back({.call = "limit of " + call.limit + (call.allowed ? "" : " passed"),
                         .asked = asked,
                         .answer = *wrong,
                         .text = fmt::format("{}{} {} (status {}{})", call.what, in_words(asked),
                                             in_words(*wrong), status, said),
                         .ended = {}});
  };
  for_each_limit(params, traits_of(kernel_, 0), [&](const LimitedCall &call) {
    uint64_t bytes = 0;
    if (call.of_plan) return judge(call, Asked::kPlan, kernel_.plan_size(params.get(), &bytes));
    judge(call, Asked::kSupports, kernel_.supports(params.get()));
    if (call.allowed && kernel_.workspace_size != nullptr)
      judge(call, Asked::kWorkspace, kernel_.workspace_size(params.get(), &bytes));
  });
  return misjudged;
}

std::unique_ptr<Sut> make_sut(const assay_kernel &kernel) {
  return kernel.target == ASSAY_TARGET_CUDA ? make_cuda_sut(kernel) : make_simt_sut(kernel);
}

} // namespace assay
