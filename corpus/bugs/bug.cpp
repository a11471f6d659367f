// SPDX-License-Identifier: Apache-2.0
#include "corpus/bugs/bug.h"

namespace assay::bugs {

thread_local Bug active = Bug::none;

} // namespace assay::bugs
