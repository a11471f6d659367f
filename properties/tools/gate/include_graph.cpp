// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/gate/include_graph.h"

#include <filesystem>
#include <regex>
#include <sstream>

#include "properties/tools/gate/rooms.h"

namespace assay::gate {
namespace {

namespace fs = std::filesystem;
using Read = std::function<std::string(const std::string &path)>;

bool is_code(const std::string &path) {
  for (const char *end : {".h", ".hpp", ".cuh", ".c", ".cc", ".cpp", ".cu", ".inl", ".def", ".inc"})
    if (path.ends_with(end)) return true;
  return false;
}

std::vector<std::string> quoted_includes(const std::string &text) {
  static const std::regex kInclude(R"re(^\s*#\s*include\s*"([^"]+)")re");
  std::vector<std::string> out;
  std::istringstream in(text);
  std::smatch match;
  for (std::string line; std::getline(in, line);)
    if (line.size() <= kLongestLine && std::regex_search(line, match, kInclude))
      out.push_back(match[1]);
  return out;
}

std::string stem_of(const std::string &path) { return path.substr(0, path.rfind('.')); }

/// (name, type of its call) of each row of kernels.def that the harness sees.
std::vector<std::pair<std::string, std::string>> rows_of(const std::string &text) {
  static const std::regex kRow(R"(^ASSAY_(?!ENTRY_)\w+\((\w+), (\w+)(<\w+>)?\)$)");
  std::vector<std::pair<std::string, std::string>> out;
  std::istringstream in(text);
  std::smatch match;
  for (std::string line; std::getline(in, line);)
    if (line.size() <= kLongestLine && std::regex_search(line, match, kRow))
      out.emplace_back(match[1], match[2]);
  return out;
}

/// The header of kernels/ that defines a type; empty when none does.
std::string defines(const IncludeGraph &graph, const Read &read, const std::string &type) {
  const std::regex definition("^struct " + type + " \\{", std::regex::multiline);
  for (const std::string &path : graph.files())
    if (path.starts_with("kernels/") && path.ends_with(".h") &&
        std::regex_search(read(path), definition))
      return path;
  return "";
}

struct OwnKernel {
  std::string name, folder;
  std::set<std::string> alone; ///< files that belong to no other kernel
};

} // namespace

IncludeGraph::IncludeGraph(const std::vector<std::string> &files, const Read &read)
    : files_(files.begin(), files.end()) {
  for (const std::string &path : files)
    if (is_code(path)) includes_[path] = quoted_includes(read(path));
}

std::vector<std::string> IncludeGraph::resolve(const std::string &from,
                                               const std::string &include) const {
  const std::string beside = (fs::path(from).parent_path() / include).lexically_normal().string();
  for (const std::string &path : {beside, fs::path(include).lexically_normal().string()})
    if (files_.count(path) > 0) return {path};
  std::string tail = include;
  while (tail.starts_with("../"))
    tail.erase(0, 3);
  std::vector<std::string> out;
  for (const std::string &path : files_)
    if (path.ends_with("/" + tail)) out.push_back(path);
  return out;
}

std::vector<std::string> IncludeGraph::next(const std::string &path) const {
  std::vector<std::string> out;
  if (const auto at = includes_.find(path); at != includes_.end())
    for (const std::string &include : at->second)
      for (const std::string &file : resolve(path, include))
        out.push_back(file);
  for (const char *end : {".cpp", ".cc", ".c", ".cu"})
    if (const std::string source = stem_of(path) + end; files_.count(source) > 0)
      out.push_back(source);
  return out;
}

std::set<std::string> IncludeGraph::reach(const std::vector<std::string> &roots,
                                          const std::set<std::string> &apart) const {
  std::set<std::string> seen;
  std::vector<std::string> open;
  for (const std::string &root : roots)
    if (files_.count(root) > 0) open.push_back(root);
  while (!open.empty()) {
    const std::string path = open.back();
    open.pop_back();
    if (apart.count(path) > 0 || !seen.insert(path).second) continue;
    for (std::string &file : next(path))
      open.push_back(std::move(file));
  }
  return seen;
}

std::map<std::string, std::set<std::string>> own_kernel_files(const IncludeGraph &graph,
                                                              const Read &read) {
  std::vector<OwnKernel> kernels;
  for (const auto &[name, type] : rows_of(read("kernels/api/kernels.def"))) {
    OwnKernel kernel{name, "", {}};
    if (const std::string call = defines(graph, read, type); !call.empty()) {
      kernel.folder = fs::path(call).parent_path().string() + "/";
      kernel.alone.insert(kernel.folder + name + ".cuh");
      for (const char *end : {".h", ".cpp"})
        kernel.alone.insert(stem_of(call) + end);
    }
    kernels.push_back(std::move(kernel));
  }
  // What two kernels share is neither's.
  std::map<std::string, int> owners;
  for (const OwnKernel &kernel : kernels)
    for (const std::string &path : kernel.alone)
      ++owners[path];
  std::map<std::string, std::set<std::string>> out;
  for (const OwnKernel &kernel : kernels) {
    // A kernel that is built on another one includes what is that one's.
    const std::set<std::string> own = graph.reach({kernel.alone.begin(), kernel.alone.end()}, {});
    std::set<std::string> others;
    for (const OwnKernel &other : kernels)
      for (const std::string &path : other.alone)
        if (&other != &kernel && owners[path] == 1 && own.count(path) == 0) others.insert(path);
    std::vector<std::string> roots;
    for (const std::string &path : graph.files())
      if (!kernel.folder.empty() && path.starts_with(kernel.folder) &&
          path.find("/tests/") == std::string::npos)
        roots.push_back(path);
    out[kernel.name] = graph.reach(roots, others);
  }
  return out;
}

} // namespace assay::gate
