// SPDX-License-Identifier: Apache-2.0
// Which kernels a change touches, by what their sources include.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace assay::gate {

/// The files of a tree and the quoted includes of its C++ and CUDA files.
class IncludeGraph {
public:
  /// `read`: the text of a file.
  IncludeGraph(const std::vector<std::string> &files,
               const std::function<std::string(const std::string &path)> &read);

  /// The roots and all that they reach by includes: a header brings the source of its name. What is
  /// in `apart` is not passed through and not reached.
  std::set<std::string> reach(const std::vector<std::string> &roots,
                              const std::set<std::string> &apart = {}) const;
  const std::set<std::string> &files() const { return files_; }

private:
  std::vector<std::string> next(const std::string &path) const;
  /// Beside the file, from the root, or wherever a path ends so.
  std::vector<std::string> resolve(const std::string &from, const std::string &include) const;

  std::set<std::string> files_;
  std::map<std::string, std::vector<std::string>> includes_;
};

/// The files of this repository that make each kernel of kernels/api/kernels.def. A kernel
/// is the folder that describes its call, without what is named after another one, and what it
/// includes.
std::map<std::string, std::set<std::string>>
own_kernel_files(const IncludeGraph &graph,
                 const std::function<std::string(const std::string &path)> &read);

} // namespace assay::gate
