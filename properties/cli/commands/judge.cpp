// SPDX-License-Identifier: Apache-2.0
// Tensors of others are read by the Python package, which knows .npz and what engines write.

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "properties/cli/commands/commands.h"
#include "properties/cli/session/own_program.h"
namespace assay {
namespace {

constexpr const char *kAbsent =
    " is a command of the Python package, which python3 does not find: pip install "
    "attention_assay-*.whl brings it, or pip install . at the root of assay's tree";

/// Its arguments are what is said without the package, and those of assay. No module is found in
/// the working folder, where a candidate may have left some.
constexpr const char *kPython = R"(
import sys
"" in sys.path[:1] and sys.path.pop(0)
absent = sys.argv.pop(1)
try:
    from assay.__main__ import main
except ImportError:
    print("assay: " + absent, file=sys.stderr)
    sys.exit(3)
main()
)";

} // namespace

bool is_python_command(std::string_view name) {
  return std::ranges::any_of(kPythonCommands,
                             [&](const PythonCommand &c) { return c.name == name; });
}

void run_in_python(const std::vector<std::string> &arguments) {
  const std::string absent = arguments.at(0) + kAbsent;
  std::vector<const char *> words = {"python3", "-c", kPython, absent.c_str()};
  for (const std::string &argument : arguments)
    words.push_back(argument.c_str());
  words.push_back(nullptr);
  setenv("ASSAY_PROGRAM", own_program().c_str(), 0); // libassay_judge may lie beside it
  execvp(words[0], const_cast<char *const *>(words.data()));
  throw CliError(kExitUnsupported, absent);
}

} // namespace assay
