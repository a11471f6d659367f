// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace assay {

/// Where the kept findings lie, or "": what is installed with the program in `program_folder`, else
/// corpus/findings of the tree around the program, else of the tree around `current`.
std::string kept_folder(const std::filesystem::path &program_folder,
                        const std::filesystem::path &current);

} // namespace assay
