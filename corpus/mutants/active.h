// SPDX-License-Identifier: Apache-2.0
// The run-time switch of the mutant schemata: which known-wrong kernel this thread runs.
#pragma once

#include "corpus/mutants/helpers.h"

#include <span>
#include <string>
#include <string_view>

namespace assay::mutants {

struct Mutant {
  int id; // > 0
  const char *name, *file, *why;
  const char *kernels; // comma separated
  bool needs_features; // or another of `needs`, or of a later set: not in the kill matrix
  const char *seen_by; // fuzz targets, comma separated
};

/// Every mutant in the binary (table.cpp).
std::span<const Mutant> all();
/// Names of those whose text was not in the kernels when they were built.
std::span<const char *const> omitted();
/// Null when there is none of that name.
inline const Mutant *find(std::string_view name) {
  for (const Mutant &mutant : all())
    if (name == mutant.name) return &mutant;
  return nullptr;
}

/// Whether a list with commas has the word.
inline bool lists(const char *list, const std::string &word) {
  return (std::string(list) + ",").find(word + ",") != std::string::npos;
}
inline bool concerns(const Mutant &mutant, const std::string &kernel) {
  return lists(mutant.kernels, kernel);
}

inline thread_local int active_id = 0; // 0: the unmodified kernel
inline bool is_active(int id) { return active_id == id; }

/// Runs mutant `id` on this thread for the lifetime of the object.
class Activate {
public:
  explicit Activate(int id) { active_id = id; }
  ~Activate() { active_id = 0; }
  Activate(const Activate &) = delete;
  Activate &operator=(const Activate &) = delete;
};

} // namespace assay::mutants
