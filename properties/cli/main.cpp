// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iostream>

#include "properties/cli/cli.h"
#include "properties/cli/session/version.h"

/// A terminal that wants colours: no-color.org, and terminals that cannot.
static bool colourful(int descriptor) {
  const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
  return isatty(descriptor) != 0 && (no_color == nullptr || *no_color == '\0') &&
         (term == nullptr || strcmp(term, "dumb") != 0);
}

static bool finished = false;
static pid_t harness = 0;

/// A library that calls exit(0) while it is loaded or asked is no pass. Processes that are forked
/// for kernels inherit this, and end as their kernels say.
static void refuse_other_exits() {
  if (finished || getpid() != harness) return;
  constexpr char kWords[] = "assay: something else ended this process before its report\n";
  if (write(STDERR_FILENO, kWords, sizeof kWords - 1) < 0) _exit(assay::kExitHarness);
  _exit(assay::kExitHarness);
}

/// Buffers of a case are megabytes: memory that goes back to the system after each of them is
/// cleared and mapped anew, page by page, for the next one.
static void keep_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20); // no more is taken
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

int main(int argc, char **argv) {
  keep_memory();
  unsetenv("ASSAY_PASSED_ON"); // the Python package has met the program, and not itself again
  harness = getpid();
  atexit(refuse_other_exits);
  const assay_plugin *own = assay_plugin_entry(ASSAY_ABI_MAJOR);
  const int code = assay::run_cli(
      argc, argv, *own, {std::cout, std::cerr, colourful(STDOUT_FILENO), colourful(STDERR_FILENO)},
      assay::kCommit);
  finished = true;
  return code;
}
