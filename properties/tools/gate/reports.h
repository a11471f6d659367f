// SPDX-License-Identifier: Apache-2.0
// The document of a gate in words: for the terminal, a pull request, machines and a browser. Each
// takes the document of run_gate(), complete and valid UTF-8; strings in it may be hostile.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace assay::gate {

using nlohmann::json;

/// "PASS", "BLOCKED", or "INCOMPLETE" for a run that decided nothing.
std::string verdict_word(const json &document);
/// "2 red lines: main (1a2b3c4d) -> working tree (5e6f7081), target simt, seed 1, 83.0 s".
std::string summary_line(const json &document);

/// One screen: red lines and kernels, without the verdict.
std::string screen(const json &document);
std::string markdown(const json &document);
std::string junit(const json &document);
std::string sarif(const json &document);
std::string html(const json &document);

} // namespace assay::gate
