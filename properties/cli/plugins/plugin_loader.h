// SPDX-License-Identifier: Apache-2.0
// A third party's table of kernels. Whatever it holds is data of somebody else: nothing is followed
// or called before it was checked.
#pragma once

#include <string>
#include <vector>

#include "kernels/abi/plugin.h"

namespace assay {

/// The table of a shared library, checked; it stays loaded. CliError where there is none to use.
const assay_plugin *load_plugin(const std::string &path);

/// Throws CliError, one line with file, kernel and field, unless kernels/abi/plugin.h allows the
/// table: kExitUnsupported for another version of the ABI, kExitUsage for what breaks this one.
void check_plugin(const std::string &path, const assay_plugin *plugin);
/// The first of these checks: reads nothing behind the version.
void check_plugin_version(const std::string &path, const assay_plugin &plugin);
/// Kernels of an earlier header, `size` bytes each, continued by zeros.
std::vector<assay_kernel> continued_rows(const void *rows, size_t size, int32_t count);

} // namespace assay
