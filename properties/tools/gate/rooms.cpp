// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/gate/rooms.h"

namespace assay::gate {
namespace {

bool under(const std::string &path, const std::string &folder) {
  return path.starts_with(folder + "/");
}

/// Reports that the gate itself has written are among them: one line of theirs is a whole page.
bool words(const std::string &path) {
  for (const char *end :
       {".md", ".txt", ".png", ".svg", ".html", ".sarif", ".case", "LICENSE", ".gitignore"})
    if (path.ends_with(end) && !path.ends_with("CMakeLists.txt")) return true;
  return false;
}

bool test(const std::string &path) {
  return path.find("/tests/") != std::string::npos || path.starts_with("tests/") ||
         path.find("/test/") != std::string::npos || path.starts_with("test/");
}

} // namespace

Room own_room(const std::string &path) {
  if (under(path, "corpus/findings")) return Room::kKept;
  if (under(path, "corpus/mutants") && path.ends_with(".mutant")) return Room::kMutant;
  if (words(path)) return Room::kWords;
  if (test(path)) return Room::kGenerator;
  for (const char *judge : {"kernels/abi", "kernels/simt", "kernels/arch/simt"})
    if (under(path, judge)) return Room::kJudge;
  for (const char *generator : {"properties/case", "corpus/seeds", "corpus/planted", "fuzz"})
    if (under(path, generator)) return Room::kGenerator;
  // Timing and its figures, and trials of the gate, decide nothing about a result.
  if (under(path, "kernels/bench") || under(path, "corpus/changes") || path.ends_with(".csv"))
    return Room::kWords;
  return under(path, "kernels") ? Room::kKernel : Room::kJudge;
}

Room plugin_room(const std::string &path, const std::string &findings) {
  if (under(path, findings) && path.ends_with(".case")) return Room::kKept;
  if (words(path)) return Room::kWords;
  if (path == "assay.toml") return Room::kJudge;
  return test(path) ? Room::kGenerator : Room::kKernel;
}

bool overlaid(const std::string &path) {
  if (under(path, "kernels/abi") || under(path, "kernels/simt")) return false;
  return under(path, "kernels") || under(path, "corpus/mutants");
}

} // namespace assay::gate
