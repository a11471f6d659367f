// SPDX-License-Identifier: Apache-2.0
// assay.toml: how a plugin's repository is built and gated.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace assay::gate {

struct Project {
  std::string command;               ///< [build] command: for `sh -c`, in the root of the tree
  std::string library;               ///< [build] library: what it makes, from the root
  std::string worker;                ///< [build] worker: in its place, what serves the kernels
  std::string budget;                ///< [gate] budget: "10m"; may be empty
  std::vector<std::string> kernels;  ///< [gate] kernels: names; empty: all
  std::string findings = "findings"; ///< [gate] findings: folder of kept ones
  /// [kernels] NAME = sources it is made of; what they include is found. A kernel that is not here
  /// is touched by every change of code.
  std::map<std::string, std::vector<std::string>> sources;
};

/// GateError (usage) names `where`, the key and what is wrong with it.
Project parse_project(const std::string &text, const std::string &where);

} // namespace assay::gate
