// SPDX-License-Identifier: Apache-2.0
#include "properties/gate/project.h"

#include <filesystem>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "properties/gate/error.h"

namespace assay::gate {
namespace {

/// Of the tree, not of the machine.
bool inside(const std::string &path) {
  const auto normal = std::filesystem::path(path).lexically_normal();
  return !path.empty() && normal.is_relative() && *normal.begin() != "..";
}

class Reader {
public:
  explicit Reader(const std::string &where) : where_(where) {}

  void read(const CLI::ConfigItem &item, Project &out) const {
    if (item.name == "++" || item.name == "--") return; // a section begins or ends
    const std::string section = item.parents.empty() ? "" : item.parents.back();
    const std::string key = (section.empty() ? "" : section + ".") + item.name;
    if (section == "kernels")
      out.sources[item.name] = item.inputs;
    else if (key == "build.command")
      out.command = one(key, item);
    else if (key == "build.library")
      out.library = path(key, item);
    else if (key == "gate.budget")
      out.budget = one(key, item);
    else if (key == "gate.findings")
      out.findings = path(key, item);
    else if (key == "gate.kernels")
      out.kernels = item.inputs;
    else
      refuse(key, "is no key; known: build.command, build.library, gate.budget, gate.kernels, "
                  "gate.findings, kernels.NAME");
  }

  [[noreturn]] void refuse(const std::string &key, const std::string &why) const {
    throw GateError(kUsage, fmt::format("{}: {} {}", where_, key, why));
  }

private:
  std::string one(const std::string &key, const CLI::ConfigItem &item) const {
    if (item.inputs.size() != 1 || item.inputs[0].empty()) refuse(key, "is not one text in quotes");
    return item.inputs[0];
  }
  std::string path(const std::string &key, const CLI::ConfigItem &item) const {
    const std::string out = one(key, item);
    if (!inside(out)) refuse(key, "is no path inside the repository");
    return out;
  }

  const std::string &where_;
};

} // namespace

Project parse_project(const std::string &text, const std::string &where) {
  Project out;
  const Reader reader(where);
  std::istringstream in(text);
  try {
    for (const CLI::ConfigItem &item : CLI::ConfigTOML().from_config(in))
      reader.read(item, out);
  } catch (const CLI::Error &e) {
    throw GateError(kUsage, fmt::format("{}: {}", where, e.what()));
  }
  if (out.command.empty()) reader.refuse("build.command", "is missing");
  if (out.library.empty()) reader.refuse("build.library", "is missing");
  return out;
}

} // namespace assay::gate
