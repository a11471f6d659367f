// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/abi/plugin.h"
#include "properties/cli/session/streams.h"

namespace assay {

/// The program `assay` over the kernels of `own`. Never throws. `commit`: what --version names.
int run_cli(int argc, const char *const *argv, const assay_plugin &own, const CliStreams &streams,
            const char *commit = "unknown");

} // namespace assay
