// SPDX-License-Identifier: Apache-2.0
// What `assay new plugin` writes: a small project with a right kernel, from templates/.
#pragma once

#include <string>
#include <vector>

namespace assay::plugins {

enum class Kind { kPaged, kCascade, kMerge };
/// kSimt: a kernel of specialised warps for the CPU executor and CUDA, of kPaged alone. Its project
/// needs an installed assay.
enum class Language { kCpp, kSimt, kCuda, kPython };

struct ProjectFile {
  std::string path; ///< in the project's folder
  std::string text;
};

/// Letters, digits, '_', '-' and '.', a letter first, 80 at most: such a name needs no quotes in
/// any file of a project. Why `name` is none; empty when it is one.
std::string name_defect(const std::string &name);

/// `name` is that of the library, and of its kernel: those of a merge are NAME_state and
/// NAME_states. `like`: the named arithmetic that its declaration starts from; empty: what its code
/// does. Throws std::invalid_argument with what is wrong with a name, or with kind and language.
std::vector<ProjectFile> project_files(Kind kind, Language language, const std::string &name,
                                       const std::string &like = "");

/// The kernels of such a project, in order.
std::vector<std::string> kernel_names(Kind kind, const std::string &name);

} // namespace assay::plugins
