// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/asked_apart.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace assay {
namespace {

[[noreturn]] void answer(int pipe, int (*ask)()) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int said = ask();
  _exit(write(pipe, &said, sizeof said) == sizeof said ? 0 : 1);
}

std::optional<int> read_answer(int pipe, std::chrono::milliseconds patience) {
  pollfd ready{pipe, POLLIN, 0};
  int polled = 0, said = 0;
  do
    polled = poll(&ready, 1, static_cast<int>(patience.count()));
  while (polled < 0 && errno == EINTR);
  if (polled <= 0 || read(pipe, &said, sizeof said) != sizeof said) return std::nullopt;
  return said;
}

void end(pid_t process) {
  kill(process, SIGKILL);
  while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
}

} // namespace

std::optional<int> asked_apart(int (*ask)(), std::chrono::milliseconds patience) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const pid_t process = fork();
  if (process == 0) answer(ends[1], ask);
  close(ends[1]);
  std::optional<int> said;
  if (process > 0) {
    said = read_answer(ends[0], patience);
    end(process);
  }
  close(ends[0]);
  return said;
}

int asked_apart_or_here(int (*ask)(), std::chrono::milliseconds patience) {
  const std::optional<int> said = asked_apart(ask, patience);
  return said == 0 ? ask() : said.value_or(0);
}

} // namespace assay
