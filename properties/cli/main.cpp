// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <iostream>

#include "properties/cli/cli.h"

int main(int argc, char **argv) {
  const assay_plugin *own = assay_plugin_entry(ASSAY_ABI_MAJOR);
  return assay::run_cli(argc, argv, *own, {std::cout, std::cerr, isatty(STDOUT_FILENO) != 0});
}
