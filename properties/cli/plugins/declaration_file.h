// SPDX-License-Identifier: Apache-2.0
// The declarations of kernels as data: written by `list kernels`, held to with --declared-by.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "kernels/abi/plugin.h"

namespace assay {

/// All that a kernel promises: its arithmetic by name, formats and classes as words, and whether it
/// has a key order and a plan of its own.
nlohmann::json declaration_json(const assay_kernel &kernel);

/// What a comparison of two declarations needs: the name of each field; whether it is a promise, or
/// makes bounds; and what is wider or promises less: "more", "less", "any" change, or the later one
/// of "words", best first. Of "bits" it is what does not contain the other.
nlohmann::json declaration_fields();

/// What a kernel promises beside its arithmetic, as the Python package knows it (promises.json):
/// each name, what its numbers are called, and whether only paged kernels have it.
nlohmann::json promise_rows();

/// The kernels of a plugin as a file declares them.
struct HeldPlugin {
  std::vector<assay_kernel> kernels;
  assay_plugin plugin;
};

/// `plugin` with the declarations that `file`, a document of `assay list kernels --json`, has for
/// its kernels' names and targets; others keep their own. CliError for what is no such file or
/// declares nothing that bounds. The plugin's functions stay; the result points into itself.
void hold_to(const assay_plugin &plugin, const std::string &file, HeldPlugin &out);
/// Does so by the text of such a file; `file` names it in refusals.
void hold_to_text(const assay_plugin &plugin, const std::string &text, const std::string &file,
                  HeldPlugin &out);

} // namespace assay
