// SPDX-License-Identifier: Apache-2.0
#include "properties/plugins/project.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <string_view>

#include "properties/plugins/arithmetics.h"
#include "properties/plugins/embedded.h"

namespace assay::plugins {
namespace {

constexpr size_t kMaxName = 80;
constexpr std::string_view kPlaceholder = "my_kernel"; // so that templates compile as they are

std::string template_text(const std::string &path) {
  const EmbeddedFile *end = kEmbedded + kEmbeddedCount;
  const EmbeddedFile *at =
      std::find_if(kEmbedded, end, [&](const EmbeddedFile &f) { return f.path == path; });
  if (at == end) throw std::logic_error("plugins: no template " + path);
  return std::string(at->text);
}

std::string replaced(std::string text, std::string_view word, const std::string &by) {
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += by.size())
    text.replace(at, word.size(), by);
  return text;
}

std::string joined(const std::vector<std::string> &words, const std::string &before,
                   const std::string &between) {
  std::string out;
  for (const std::string &word : words)
    out += (out.empty() ? "" : between) + replaced(before, "*", word);
  return out;
}

const char *stem(Kind kind) {
  constexpr const char *kStems[] = {"paged", "cascade", "merge"};
  return kStems[static_cast<int>(kind)];
}

/// What a Python project's worker serves.
std::vector<std::string> functions(Kind kind) {
  if (kind == Kind::kMerge) return {"merge_state", "merge_states"};
  return {"attention"};
}

struct Source {
  std::string path; ///< in the project
  std::string from; ///< in templates/
};

std::vector<Source> sources(Kind kind, Language language) {
  const std::string name = stem(kind);
  if (language == Language::kPython)
    return {{"README.md", "python/README.md"},
            {"kernel.py", "python/" + name + ".py"},
            {"test_kernel.py",
             kind == Kind::kMerge ? "python/test_merge.py" : "python/test_attention.py"},
            {"assay.toml", "python/assay.toml"},
            {".gitignore", "gitignore"}};
  if (language == Language::kSimt)
    return {{"README.md", "simt/README.md"},   {"CMakeLists.txt", "simt/CMakeLists.txt"},
            {"kernel.cuh", "simt/kernel.cuh"}, {"kernel.cpp", "simt/kernel.cpp"},
            {"assay.toml", "assay.toml"},      {".gitignore", "gitignore"}};
  const std::string folder = language == Language::kCuda ? "cuda/" : "cpp/";
  const std::string end = language == Language::kCuda ? ".cu" : ".cpp";
  return {{"README.md", "README.md"},
          {"CMakeLists.txt", folder + "CMakeLists.txt"},
          {"kernel" + end, folder + name + end},
          {"include/assay/assay.h", "include/assay/assay.h"},
          {"include/assay/plugin.h", "include/assay/plugin.h"},
          {"assay.toml", "assay.toml"},
          {".gitignore", "gitignore"}};
}

} // namespace

std::string name_defect(const std::string &name) {
  const auto letter = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  };
  const bool good = !name.empty() && name.size() <= kMaxName &&
                    std::isalpha(static_cast<unsigned char>(name[0])) != 0 &&
                    std::all_of(name.begin(), name.end(), letter);
  return good ? ""
              : "is not a letter followed by letters, digits, '_', '-' and '.', 80 characters at "
                "most";
}

std::vector<std::string> kernel_names(Kind kind, const std::string &name) {
  if (kind == Kind::kMerge) return {name + "_state", name + "_states"};
  return {name};
}

std::vector<ProjectFile> project_files(Kind kind, Language language, const std::string &name,
                                       const std::string &like) {
  if (const std::string defect = name_defect(name); !defect.empty())
    throw std::invalid_argument("'" + name + "' " + defect);
  if (language == Language::kSimt && kind != Kind::kPaged)
    throw std::invalid_argument("only a kernel of paged attention is written for the executor");
  const std::vector<std::string> kernels = kernel_names(kind, name);
  const bool cuda = language == Language::kCuda;
  std::vector<ProjectFile> out;
  for (const Source &source : sources(kind, language)) {
    std::string text = replaced(template_text(source.from), kPlaceholder, name);
    text = replaced(text, "@KERNEL@", kernels[0]);
    text = replaced(text, "@KERNELS@", joined(kernels, "\"*\"", ", "));
    text = replaced(text, "@WORKER@", joined(functions(kind), "kernel.py:*", " "));
    text = replaced(text, "@TARGET@", cuda ? " --target cuda" : "");
    text = replaced(text, "@EXTENSION@", cuda ? "cu" : "cpp");
    if (!like.empty()) text = with_arithmetic(text, language, like);
    out.push_back({source.path, text});
  }
  return out;
}

} // namespace assay::plugins
