// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/gate/project.h"

#include <filesystem>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "properties/tools/gate/error.h"

namespace assay::gate {
namespace {

/// Whether a path stays inside the tree.
bool inside(const std::string &path) {
  const auto normal = std::filesystem::path(path).lexically_normal();
  return !path.empty() && normal.is_relative() && *normal.begin() != "..";
}

/// What is wrong, always with the file and the key.
struct Place {
  std::string file, key;
  [[noreturn]] void refuse(const std::string &why) const {
    throw GateError(kUsage, fmt::format("{}: {} {}", file, key, why));
  }
};

std::string text_of(const Place &place, const toml::node &node) {
  const auto text = node.value_exact<std::string>();
  if (!text || text->empty()) place.refuse("is not one text in quotes");
  return *text;
}

std::string path_of(const Place &place, const toml::node &node) {
  std::string out = text_of(place, node);
  if (!inside(out)) place.refuse("is no path inside the repository");
  return out;
}

/// One text, or several.
std::vector<std::string> texts_of(const Place &place, const toml::node &node) {
  std::vector<std::string> out;
  if (const toml::array *array = node.as_array())
    for (const toml::node &item : *array)
      out.push_back(text_of(place, item));
  else
    out.push_back(text_of(place, node));
  return out;
}

void read(const Place &place, const std::string &key, const toml::node &node, Project &out) {
  if (place.key == "build.command")
    out.command = text_of(place, node);
  else if (place.key == "build.library")
    out.library = path_of(place, node);
  else if (place.key == "build.worker")
    out.worker = text_of(place, node);
  else if (place.key == "gate.budget")
    out.budget = text_of(place, node);
  else if (place.key == "gate.findings")
    out.findings = path_of(place, node);
  else if (place.key == "gate.kernels")
    out.kernels = texts_of(place, node);
  else if (place.key == "kernels." + key)
    out.sources[key] = texts_of(place, node);
  else
    place.refuse("is no key; known: build.command, build.library, build.worker, gate.budget, "
                 "gate.kernels, gate.findings, kernels.NAME");
}

toml::table parse(const std::string &text, const std::string &where) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error &e) {
    throw GateError(kUsage,
                    fmt::format("{}:{}: {}", where, e.source().begin.line, e.description()));
  }
}

} // namespace

Project parse_project(const std::string &text, const std::string &where) {
  Project out;
  for (const auto &[section, node] : parse(text, where)) {
    const std::string name(section.str());
    const toml::table *table = node.as_table();
    if (table == nullptr) Place{where, name}.refuse("stands in no section");
    for (const auto &[key, value] : *table)
      read({where, name + "." + std::string(key.str())}, std::string(key.str()), value, out);
  }
  if (!out.worker.empty() && !out.library.empty())
    Place{where, "build.worker"}.refuse("stands beside build.library; one of them has the kernels");
  if (!out.worker.empty()) return out; // which may have nothing to build
  if (out.command.empty()) Place{where, "build.command"}.refuse("is missing");
  if (out.library.empty())
    Place{where, "build.library"}.refuse("is missing, and so is build.worker");
  return out;
}

} // namespace assay::gate
