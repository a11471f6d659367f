// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/sut.h"

#include <fmt/format.h>

#include "properties/call/bad_calls.h"
#include "properties/call/params.h"
#include "properties/case/classify.h"
#include "properties/sut/guard.h"

namespace assay {
namespace {

/// One violation per buffer: the first byte that changed although nothing may write it.
void report_changes(const Buffer &before, const Buffer &after, std::vector<std::string> &out) {
  size_t changed = 0, first = 0;
  for (size_t i = 0; i < before.bytes.size(); ++i) {
    if (before.bytes[i] == after.bytes[i] || (before.output && before.live[i])) continue;
    if (changed++ == 0) first = i;
  }
  if (changed == 0) return;
  const char *what = before.output ? "bytes outside the live output" : "bytes of an input";
  out.push_back(fmt::format("{}: {} {} written, the first at byte {} of {}", before.name, changed,
                            what, first, before.bytes.size()));
}

} // namespace

RunResult Sut::run(Tensors &t) {
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

oracle::AskKeyTiles Sut::key_tiles(const Tensors &t) {
  const auto params = std::make_shared<AbiParams>(input_params(t));
  oracle::AskKeyTiles ask;
  if (params->family == Family::kPaged) ask = oracle::ask_kernel(kernel_, params->paged);
  if (params->family == Family::kCascade) ask = oracle::ask_kernel(kernel_, params->cascade);
  if (!ask) return nullptr;
  return [params, ask](int request, int qo_head) { return ask(request, qo_head); };
}

std::vector<std::string> Sut::accepted_bad_calls(const Tensors &t) {
  Tensors copy = t; // a call must not write, but this one is not known to be right
  AbiParams params = make_params(copy, host_addresses(copy), kernel_.target, nullptr);
  uint64_t bytes = 0;
  if (kernel_.workspace_size != nullptr)
    if (kernel_.workspace_size(params.get(), &bytes) != ASSAY_OK) return {};
  GuardedBytes workspace(bytes);
  params.set_workspace(workspace.data(), bytes);
  if (kernel_.supports(params.get()) != ASSAY_OK) return {};
  std::vector<std::string> accepted;
  const CallTraits traits{kernel_.arithmetic.max_splits > 1, kernel_.plan_size != nullptr, bytes};
  for_each_bad_call(params, traits, [&](const std::string &what) {
    if (kernel_.supports(params.get()) == ASSAY_OK)
      accepted.push_back(what);
    else if (kernel_.run(params.get()) == ASSAY_OK)
      accepted.push_back(what + ", which is refused when asked and then run");
  });
  return accepted;
}

std::unique_ptr<Sut> make_sut(const assay_kernel &kernel) {
  return kernel.target == ASSAY_TARGET_CUDA ? make_cuda_sut(kernel) : make_simt_sut(kernel);
}

} // namespace assay
