// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/cli/commands/commands.h"
#include "properties/plugins/project.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using plugins::Kind;
using plugins::Language;

Kind kind_of(const NewOptions &asked) {
  if (asked.simt && (asked.cascade || asked.merge))
    throw CliError(kExitUsage, "new plugin: --simt writes a kernel of paged attention alone");
  if (asked.simt) return Kind::kPaged;
  if (asked.paged + asked.cascade + asked.merge != 1)
    throw CliError(kExitUsage, "new plugin: expected one of --paged, --cascade and --merge");
  return asked.paged ? Kind::kPaged : asked.cascade ? Kind::kCascade : Kind::kMerge;
}

Language language_of(const NewOptions &asked) {
  if (asked.simt + asked.cuda + asked.python > 1)
    throw CliError(kExitUsage, "new plugin: expected one of --simt, --cuda and --python at most");
  if (asked.simt) return Language::kSimt;
  return asked.cuda ? Language::kCuda : asked.python ? Language::kPython : Language::kCpp;
}

/// Absent or empty: nothing that is there is overwritten.
void require_free(const std::string &folder) {
  std::error_code ec;
  const fs::file_status status = fs::status(folder, ec);
  if (!fs::exists(status)) return;
  if (!fs::is_directory(status))
    throw CliError(kExitUsage, fmt::format("DIR {}: exists and is no folder", folder));
  const bool empty = fs::is_empty(folder, ec);
  if (ec) throw CliError(kExitUsage, fmt::format("DIR {}: {}", folder, ec.message()));
  if (!empty) throw CliError(kExitUsage, fmt::format("DIR {}: is not empty", folder));
}

void write_files(const std::string &folder, const std::vector<plugins::ProjectFile> &files) {
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) throw CliError(kExitUsage, fmt::format("DIR {}: {}", folder, ec.message()));
  for (const plugins::ProjectFile &file : files) {
    const std::string path = (fs::path(folder) / file.path).string();
    fs::create_directories(fs::path(path).parent_path(), ec); // the stream says so if there is none
    std::ofstream out(path, std::ios::binary);
    out << file.text;
    out.close();
    if (!out) throw CliError(kExitUsage, fmt::format("{}: cannot write", path));
  }
}

/// The first commands of its README.
std::string next_steps(const NewOptions &asked, Language language) {
  const std::string into = "  cd " + shell_quoted(asked.folder) + "\n";
  if (language == Language::kPython) return into + "  python3 -m pytest -p assay.pytest_plugin\n";
  return into + fmt::format("  cmake -B build -G Ninja && cmake --build build\n"
                            "  assay check --plugin build/{}.so{} --budget 60s\n",
                            asked.name, language == Language::kCuda ? " --target cuda" : "");
}

} // namespace

int command_new(Session &session, const NewOptions &asked) {
  const Kind kind = kind_of(asked);
  const Language language = language_of(asked);
  if (const std::string defect = plugins::name_defect(asked.name); !defect.empty())
    throw CliError(kExitUsage, fmt::format("--name '{}': {}", asked.name, defect));
  require_free(asked.folder);
  const auto files = plugins::project_files(kind, language, asked.name, asked.like);
  write_files(asked.folder, files);
  nlohmann::json names = nlohmann::json::array();
  for (const plugins::ProjectFile &file : files)
    names.push_back(file.path);
  if (!session.options.quiet) {
    for (const plugins::ProjectFile &file : files)
      session.streams.out << (fs::path(asked.folder) / file.path).string() << "\n";
    session.streams.out << "next:\n" << next_steps(asked, language);
  }
  return session.finish({{"folder", asked.folder},
                         {"files", names},
                         {"kernels", plugins::kernel_names(kind, asked.name)},
                         {"exit", int{kExitPass}}},
                        kExitPass);
}

} // namespace assay
