// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/session.h"

#ifdef ASSAY_WITH_CUDA
#include "kernels/bench/report.h"
#endif

namespace assay {

int command_bench(Session &session) {
#ifdef ASSAY_WITH_CUDA
  bench::Options options;
  options.only = session.options.cells;
  return bench::run_and_report(options, session.options.json);
#else
  session.streams.err << "assay: bench: this build has no cuda target (no nvcc was found)\n";
  return kExitUnsupported;
#endif
}

} // namespace assay
