// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay {

/// Processors that this process may use, at least 1: with taskset or a cpuset fewer than there are.
int usable_processors();

} // namespace assay
