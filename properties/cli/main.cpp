// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iostream>

#include "properties/cli/cli.h"

/// A terminal that wants colours: no-color.org, and terminals that cannot.
static bool colourful(int descriptor) {
  const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
  return isatty(descriptor) != 0 && (no_color == nullptr || *no_color == '\0') &&
         (term == nullptr || strcmp(term, "dumb") != 0);
}

int main(int argc, char **argv) {
  const assay_plugin *own = assay_plugin_entry(ASSAY_ABI_MAJOR);
  return assay::run_cli(argc, argv, *own,
                        {std::cout, std::cerr, colourful(STDOUT_FILENO), colourful(STDERR_FILENO)});
}
