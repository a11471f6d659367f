// SPDX-License-Identifier: Apache-2.0
// A run decided on the GPU, as far as it can be; the rest, and a sample, by the host.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "oracle/device/tiers.h"
#include "oracle/judge/judge.h"
#include "properties/relate/outcome.h"
#include "properties/sut/oracle_call.h"

namespace assay {

/// Which rows the host decides again, and which of those are recomputed in interval arithmetic.
struct HostSample {
  std::function<bool(int row, int head, size_t keys)> again;
  oracle::CertifySample certified;
};

/// None where the GPU does not take the call, or where it is not worth while. A row that the GPU
/// leaves open is the host's. Throws std::logic_error where the two differ in a row of the sample.
std::optional<oracle::Report> judged_there(const Outcome &run, const OracleCall &call,
                                           const oracle::CallOutputs &outputs,
                                           const HostSample &sample, DeviceOracle &device);

/// A row that the GPU found inside, and what the host says of it: empty, or how they differ.
std::string apart(const oracle::TierRow &device, const oracle::Report &host);

} // namespace assay
