// SPDX-License-Identifier: Apache-2.0
// What `check` says at its end.
#pragma once

#include "properties/tools/report/document.h"

namespace assay::report {

struct TerminalLook {
  bool colours = false;
  bool quiet = false; ///< findings and what is not proved, and nothing else
  size_t columns = 0; ///< width of a terminal, for sentences; 0: one line each, to be searched
};
std::string terminal(const json &document, const TerminalLook &look);

} // namespace assay::report
