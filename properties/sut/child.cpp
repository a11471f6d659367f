// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/child.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <mutex>
#include <stdexcept>

#include <fmt/format.h>

namespace assay {
namespace {

Hazard lost_channel() {
  return {.kind = Hazard::Kind::kChannel,
          .text = "the kernel closed or corrupted the channel of its process"};
}

Hazard death_of(int status) {
  using enum Hazard::Kind;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kChannelGone) return lost_channel();
  if (WIFEXITED(status))
    return {.kind = kExited,
            .text = fmt::format("the kernel ended its process with exit({})", WEXITSTATUS(status))};
  if (WIFSIGNALED(status))
    return {.kind = kSignal,
            .signal = WTERMSIG(status),
            .text = fmt::format("the kernel's process died of signal {} ({})", WTERMSIG(status),
                                strsignal(WTERMSIG(status)))};
  return {.kind = kGone, .text = "the kernel's process is gone"};
}

} // namespace

void Child::start(const std::function<void(int fd)> &body,
                  const std::function<pid_t(int fd)> &elsewhere) {
  // One at a time: a process that inherits another one's end of a channel keeps it open.
  static std::mutex starting;
  const std::lock_guard lock(starting);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error(fmt::format("no channel to a process: {}", strerror(errno)));
  pid_ = elsewhere ? elsewhere(ends[1]) : -1;
  if (pid_ < 0) {
    // What is buffered here would be written once more by a kernel that calls exit().
    std::cout.flush();
    fflush(nullptr);
    pid_ = fork();
  }
  if (pid_ == 0) {
    close(ends[0]);
    body(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  channel_.emplace(ends[0]);
  if (pid_ > 0) return;
  const int error = errno;
  stop();
  throw std::runtime_error(fmt::format("no process: {}", strerror(error)));
}

bool Child::alive() {
  if (pid_ <= 0) return false;
  return !reap(nullptr, WNOHANG);
}

bool Child::reap(int *status, int flags) {
  rusage used{};
  if (wait4(pid_, status, flags, &used) == 0) return false;
  for (const timeval &time : {used.ru_utime, used.ru_stime})
    if (!counted_)
      spent_ += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  pid_ = -1;
  counted_ = false;
  return true;
}

double Child::spent() const {
  clockid_t clock{};
  timespec now{};
  if (pid_ <= 0 || counted_ || clock_getcpuclockid(pid_, &clock) != 0 ||
      clock_gettime(clock, &now) != 0)
    return spent_;
  return spent_ + static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Hazard Child::failure(const Deadline &until) {
  int status = 0;
  if (reap(&status, WNOHANG)) return death_of(status);
  const bool late = until.over();
  // A process that is about to die closes its channel earlier: some time on a busy machine.
  constexpr int kMilliseconds = 2'000;
  for (int i = 0; !late && i < kMilliseconds; ++i) {
    usleep(1000);
    if (reap(&status, WNOHANG)) return death_of(status);
  }
  if (!late) return lost_channel();
  const double waited = std::chrono::duration<double>(patience_).count();
  spent_ += waited;
  counted_ = true;
  lose_patience();
  return {.kind = Hazard::Kind::kHung,
          .text = fmt::format("the kernel has not returned for {:g} s", waited)};
}

void Child::lose_patience() { patience_ = std::min(patience_, kLaterPatience); }

void Child::stop() {
  channel_.reset();
  if (pid_ > 0) {
    kill(-pid_, SIGKILL); // no group of that number, unless it leads one
    kill(pid_, SIGKILL);
    reap(nullptr, 0);
  }
  pid_ = -1;
}

std::string said_apart(const std::function<std::string()> &say) {
  constexpr uint64_t kMax = 1 << 16;
  Child child;
  child.start([&](int fd) {
    enter_child();
    Channel channel(fd);
    const std::string text = say();
    channel.send(std::as_bytes(std::span(text)), std::nullopt);
  });
  const Deadline until = child.deadline();
  wire::Message reply;
  if (!child.channel().receive(reply, until, kMax)) return child.failure(until).text;
  return {reinterpret_cast<const char *>(reply.data()), reply.size()};
}

void enter_child() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGINT, SIG_IGN); // the harness ends it
  signal(SIGTERM, SIG_DFL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

} // namespace assay
