// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/findings/case_file.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "properties/case/hash.h"
#include "properties/cli/session/streams.h"

namespace assay {

Case load_case(const std::string &path) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec))
    throw CliError(kExitUsage, fmt::format("{}: is a directory", path));
  // A pipe or a device may never end.
  if (std::filesystem::exists(path, ec) && !std::filesystem::is_regular_file(path, ec))
    throw CliError(kExitUsage, fmt::format("{}: is no regular file", path));
  std::ifstream file(path, std::ios::binary);
  if (!file) throw CliError(kExitUsage, fmt::format("{}: cannot read", path));
  std::string text(kMaxCaseBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  auto parsed = parse_case(text);
  if (auto *error = std::get_if<CaseError>(&parsed)) {
    std::string where = error->line > 0 ? fmt::format("{}:{}", path, error->line) : path;
    throw CliError(kExitUsage, fmt::format("{}: {}", where, error->message));
  }
  return std::get<Case>(std::move(parsed));
}

void write_case(const std::string &path, const Case &c) {
  std::error_code ec;
  auto parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, ec);
  const std::string part = path + ".part";
  std::ofstream file(part, std::ios::binary);
  file << format_case(c);
  file.close();
  if (file) std::filesystem::rename(part, path, ec);
  if (file && !ec) return;
  std::filesystem::remove(part, ec);
  throw CliError(kExitUsage, fmt::format("{}: cannot write", path));
}

std::string finding_name(const Case &c) {
  uint64_t h = 0;
  for (char ch : format_problem(c.problem))
    h = hash_mix(h ^ static_cast<unsigned char>(ch));
  return fmt::format("{}-{}-{:08x}.case", c.kernel, c.property, static_cast<uint32_t>(h));
}

} // namespace assay
