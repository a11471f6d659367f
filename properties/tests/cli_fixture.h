// SPDX-License-Identifier: Apache-2.0
// The program in this process, over reference kernels and wrong ones, in a folder of its own.
#pragma once

#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "properties/cli/cli.h"
#include "properties/tests/own_folder.h"
#include "properties/tests/reference_kernels.h"

namespace assay {

struct Ran {
  int code;
  std::string out, err;
};

inline Ran program(const assay_plugin &plugin, std::vector<std::string> args) {
  args.insert(args.begin(), "assay");
  std::vector<const char *> argv;
  for (const std::string &a : args)
    argv.push_back(a.c_str());
  std::ostringstream out, err;
  int code = run_cli(static_cast<int>(argv.size()), argv.data(), plugin, {out, err, false});
  return {code, out.str(), err.str()};
}

inline Ran assay_program(std::vector<std::string> args) {
  return program(reference::plugin(), std::move(args));
}

inline assay_plugin one_kernel(const assay_kernel &kernel) {
  assay_plugin plugin = reference::plugin();
  plugin.kernels = &kernel;
  plugin.num_kernels = 1;
  return plugin;
}

/// `check` replays and writes ./findings.
class Cli : public InOwnFolder {
protected:
  std::string path(const std::string &name) const { return (folder_ / name).string(); }
  std::string file(const std::string &name, const std::string &text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  nlohmann::json json(const std::string &name) const {
    std::ifstream in(path(name));
    return nlohmann::json::parse(in);
  }
  /// One line, naming the program.
  static void expect_error(const Ran &r, int code, const std::string &part) {
    EXPECT_EQ(r.code, code) << r.out << r.err;
    EXPECT_EQ(r.err.rfind("assay: ", 0), 0u) << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    EXPECT_NE(r.err.find(part), std::string::npos) << r.err;
  }
};

/// A defect that every thread sees: merge_state that returns its first input.
inline assay_status first_input(const void *params) {
  const auto &p = *static_cast<const assay_merge_state_params *>(params);
  for (int r = 0; r < p.num_rows; ++r)
    for (int h = 0; h < p.num_heads; ++h)
      if (p.lse) p.lse[r * p.lse_stride_row + h * p.lse_stride_head] = 1.5f;
  return ASSAY_OK;
}

} // namespace assay
