// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay::n_cuda {

/// What the current device runs of the kernels that were compiled into this library.
struct DeviceCode {
  bool runs = false;       ///< machine code for the device, or PTX that the driver compiles
  bool warpgroups = false; ///< that code was compiled with kernels/arch/wgmma.cuh
};

DeviceCode device_code();
/// The architectures, in words.
const char *compiled_architectures();

} // namespace assay::n_cuda
