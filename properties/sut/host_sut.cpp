// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include <fmt/format.h>

#include "properties/call/params.h"
#include "properties/sut/guard.h"
#include "properties/sut/sut.h"

namespace assay {
namespace {

class HostSut final : public Sut {
public:
  using Sut::Sut;

private:
  RunResult execute(Tensors &t) override {
    std::vector<GuardedBytes> blocks;
    std::vector<void *> addresses;
    for (const Buffer &b : t.buffers) {
      blocks.emplace_back(b.bytes.size(), b.offset);
      std::memcpy(blocks.back().data(), b.bytes.data(), b.bytes.size());
      addresses.push_back(blocks.back().data());
    }
    AbiParams params = make_params(t, addresses, ASSAY_TARGET_SIMT, nullptr);
    RunResult result;
    GuardedBytes workspace(0);
    bool ok = admitted(kernel(), params.get(), result, [&](uint64_t bytes) {
      workspace = GuardedBytes(bytes, scratch_offset(t, "workspace"));
      fill_poison(workspace.data(), bytes, t.problem);
      params.set_workspace(workspace.data(), bytes);
    });
    if (!ok) return result;
    result.status = kernel().run(params.get());
    if (result.status != ASSAY_OK) result.message = last_message(kernel());
    for (size_t i = 0; i < blocks.size(); ++i) {
      blocks[i].check(t.buffers[i].name, result.violations);
      std::memcpy(t.buffers[i].bytes.data(), blocks[i].data(), t.buffers[i].bytes.size());
    }
    workspace.check("workspace", result.violations);
    return result;
  }
};

} // namespace

std::unique_ptr<Sut> make_host_sut(const assay_kernel &kernel) {
  return std::make_unique<HostSut>(kernel);
}

} // namespace assay
