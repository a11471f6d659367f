// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/sut.h"

#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "oracle/bounds/promises.h"
#include "properties/call/limit_calls.h"
#include "properties/call/params.h"
#include "properties/case/classify.h"
#include "properties/case/features.h"
#include "properties/sut/guard.h"

namespace assay {
namespace {

/// One violation per buffer: the first byte that changed although nothing may write it. `launched`:
/// live bytes of outputs may have been written.
void report_changes(const Buffer &before, const Buffer &after, bool launched,
                    std::vector<Violation> &out) {
  const bool output = before.output && launched;
  const size_t size = before.bytes.size();
  if (!output && std::memcmp(before.bytes.data(), after.bytes.data(), size) == 0) return;
  const auto bad = [&](size_t i) {
    return before.bytes[i] != after.bytes[i] && !(output && before.live[i]);
  };
  size_t changed = 0, first = size;
  for (size_t i = 0; i < size; ++i)
    changed += bad(i) ? 1 : 0;
  if (changed == 0) return;
  for (first = 0; !bad(first);)
    ++first;
  using enum Violation::Kind;
  out.push_back({.kind = output ? kDeadOutput : kInput,
                 .buffer = before.name,
                 .first = first,
                 .count = changed,
                 .size = size});
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

/// The argument of a call that means nothing to a kernel, which does not declare it; "" of none.
std::string unknown_to(const assay_kernel &kernel, const Problem &p) {
  for (const oracle::Promise &promise : oracle::promises()) {
    if (promise.feature == nullptr || promise.of(kernel) != 0) continue;
    for (const FeatureRow &feature : features())
      if (std::string_view(feature.word) == promise.feature && feature.present(p))
        return fmt::format("{} is given, and the kernel does not declare {}", promise.argument,
                           promise.name);
  }
  return "";
}

/// Asks a kernel about calls that it should refuse, and keeps what it does not refuse.
class BadCallAsker {
public:
  /// `params` is a right call, which is corrupted before each question.
  BadCallAsker(const assay_kernel &kernel, AbiParams &params, std::vector<WrongAnswer> &wrong)
      : kernel_(kernel), params_(params), wrong_(wrong), plan_bytes_(bytes_of_plan()),
        plan_(plan_bytes_) {}

  void ask(const void *call, const BadCall &bad) {
    if (kernel_.supports(call) == ASSAY_OK) return keep(bad, Asked::kSupports, "");
    if (kernel_.run(call) == ASSAY_OK)
      return keep(bad, Asked::kRun, ", which is refused when asked and then run");
    if (!bad.of_shape) return;
    uint64_t bytes = 0;
    if (kernel_.workspace_size != nullptr && kernel_.workspace_size(call, &bytes) == ASSAY_OK)
      keep(bad, Asked::kWorkspace, ", which is refused when asked and has a workspace");
    if (kernel_.plan_size == nullptr) return;
    if (kernel_.plan_size(call, &bytes) == ASSAY_OK)
      keep(bad, Asked::kPlan, ", which is refused when asked and has a plan");
    else if (plans())
      keep(bad, Asked::kPlan, ", which is refused when asked and is planned");
  }

private:
  void keep(const BadCall &bad, Asked asked, const char *more) {
    wrong_.push_back(accepted(bad, asked, more));
  }
  uint64_t bytes_of_plan() const {
    uint64_t bytes = 0;
    if (kernel_.plan_size != nullptr) kernel_.plan_size(params_.get(), &bytes);
    return bytes;
  }
  /// The call that params_ holds, with room for a plan.
  bool plans() {
    assay_paged_params planned = params_.paged;
    planned.plan = plan_.data();
    planned.plan_bytes = plan_bytes_;
    return kernel_.plan(&planned) == ASSAY_OK;
  }

  const assay_kernel &kernel_;
  AbiParams &params_;
  std::vector<WrongAnswer> &wrong_;
  uint64_t plan_bytes_;
  GuardedBytes plan_;
};

} // namespace

RunResult Sut::run(Tensors &t) {
  const std::vector<Buffer> before = t.buffers;
  return run(t, before);
}

RunResult Sut::run(Tensors &t, const std::vector<Buffer> &before) {
  std::string excluded = unknown_to(kernel_, t.problem);
  if (assumed_.no_empty_requests && has_empty_request(t.problem))
    excluded = "a request has no keys, and no_empty_requests is assumed";
  if (!excluded.empty()) {
    RunResult refused;
    refused.status = ASSAY_UNSUPPORTED;
    refused.message = excluded;
    return refused;
  }
  RunResult result = execute(t);
  for (const auto &[name, count] : result.counters)
    counters_[name] += count;
  if (result.status == ASSAY_OK || result.status == ASSAY_UNSUPPORTED)
    for (std::string &name : classify(t.problem))
      (result.status == ASSAY_OK ? classes_ : refused_classes_).insert(std::move(name));
  const bool launched = result.status == ASSAY_OK || !result.hazards.empty();
  for (size_t i = 0; i < before.size(); ++i)
    report_changes(before[i], t.buffers[i], launched, result.violations);
  return result;
}

std::shared_ptr<const oracle::KeyOrder> Sut::key_order(const Tensors &t) {
  if (kernel_.key_order == nullptr || !is_attention(t.problem)) return nullptr;
  AskedCall call{t.problem, {}};
  for (const CacheView &cache : t.caches)
    for (int buffer : {cache.table, cache.lens, cache.indptr, cache.lists})
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
  BadCallAsker asker(kernel_, params, wrong);
  for_each_bad_call(params, traits_of(kernel_, bytes),
                    [&](const BadCall &bad) { asker.ask(params.get(), bad); });
  asker.ask(nullptr, {"params", BadCall::Kind::kNull, "params null"});
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
