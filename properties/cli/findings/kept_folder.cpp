// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/findings/kept_folder.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

/// The real folder of that path, or "".
std::string folder_at(const fs::path &path) {
  std::error_code ec;
  const fs::path real = fs::canonical(path, ec);
  return !ec && fs::is_directory(real, ec) ? real.string() : "";
}

/// corpus/findings of `inside` or of the nearest folder above it that has one.
std::string in_tree_around(fs::path inside) {
  for (;; inside = inside.parent_path()) {
    if (std::string found = folder_at(inside / "corpus" / "findings"); !found.empty()) return found;
    if (inside == inside.parent_path()) return "";
  }
}

} // namespace

std::string kept_folder(const fs::path &program_folder, const fs::path &current) {
  if (std::string found = folder_at(program_folder / ASSAY_FINDINGS); !found.empty()) return found;
  if (std::string found = in_tree_around(program_folder); !found.empty()) return found;
  return in_tree_around(current);
}

} // namespace assay
