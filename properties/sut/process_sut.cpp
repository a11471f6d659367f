// SPDX-License-Identifier: Apache-2.0
// A kernel in a process of its own. Nothing it does there can end the run or pass for an answer: a
// process that ends, hangs or closes its channel is a hazard of the case that was running, and the
// next case gets a new process. The harness judges its own copy of the outputs, taken when the call
// has returned; what it expects never enters the process.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <mutex>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "kernels/simt/asan.h"
#include "properties/sut/sut.h"
#include "properties/sut/wire.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

/// The first case that hangs may merely be slow; when one did, the next ones get less.
constexpr std::chrono::seconds kFirstPatience{60}, kLaterPatience{5};
/// A reply is the memory of a case and a few lines.
constexpr uint64_t kMaxMessage = uint64_t{1} << 33;
[[maybe_unused]] constexpr rlim_t kMaxMemory = rlim_t{16} << 30;

/// One end of the channel. Both functions are false when the other end is gone or time is up.
class Channel {
public:
  explicit Channel(int fd) : fd_(fd) {}
  Channel(const Channel &) = delete;
  ~Channel() { close(fd_); }

  bool send(const wire::Message &message, std::optional<Clock::time_point> until) {
    const uint64_t size = message.size();
    return send_bytes(&size, sizeof size, until) && send_bytes(message.data(), size, until);
  }
  bool receive(wire::Message &message, std::optional<Clock::time_point> until) {
    uint64_t size = 0;
    if (!receive_bytes(&size, sizeof size, until) || size > kMaxMessage) return false;
    // Grown as it arrives: a size alone allocates nothing.
    message.clear();
    while (message.size() < size) {
      const size_t at = message.size();
      message.resize(at + std::min<uint64_t>(size - at, uint64_t{1} << 24));
      if (!receive_bytes(message.data() + at, message.size() - at, until)) return false;
    }
    return true;
  }

private:
  bool ready(short events, std::optional<Clock::time_point> until) const {
    pollfd p{fd_, events, 0};
    for (;;) {
      int wait = -1;
      if (until) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(*until - Clock::now()).count();
        if (left <= 0) return false;
        wait = static_cast<int>(left) + 1;
      }
      const int n = poll(&p, 1, wait);
      if (n > 0) return true;
      if (n == 0 || errno != EINTR) return false;
    }
  }
  bool send_bytes(const void *from, size_t size, std::optional<Clock::time_point> until) {
    const auto *at = static_cast<const std::byte *>(from);
    while (size > 0) {
      if (!ready(POLLOUT, until)) return false;
      const ssize_t n = ::send(fd_, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (n <= 0) return false;
      at += n;
      size -= static_cast<size_t>(n);
    }
    return true;
  }
  bool receive_bytes(void *to, size_t size, std::optional<Clock::time_point> until) {
    auto *at = static_cast<std::byte *>(to);
    while (size > 0) {
      if (!ready(POLLIN, until)) return false;
      const ssize_t n = ::recv(fd_, at, size, MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (n <= 0) return false;
      at += n;
      size -= static_cast<size_t>(n);
    }
    return true;
  }
  int fd_;
};

std::string death_text(int status) {
  if (WIFEXITED(status))
    return fmt::format("the kernel ended its process with exit({})", WEXITSTATUS(status));
  if (WIFSIGNALED(status))
    return fmt::format("the kernel's process died of signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return "the kernel's process is gone";
}

void limit_resources() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
#if !ASSAY_ASAN
  const rlimit memory{kMaxMemory, kMaxMemory}; // shadow memory of a sanitizer is far more
  setrlimit(RLIMIT_AS, &memory);
#endif
}

/// What the process does until its channel closes: one request, one run, one reply.
[[noreturn]] void serve(Sut &sut, Channel &channel) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGINT, SIG_IGN); // the harness ends it
  signal(SIGTERM, SIG_DFL);
  limit_resources();
  for (wire::Message message; channel.receive(message, std::nullopt);) {
    Tensors t = wire::unpack_request(message);
    RunResult result;
    try {
      result = sut.run(t);
    } catch (const std::exception &e) {
      result.hazards.push_back(fmt::format("the kernel threw: {}", e.what()));
    } catch (...) {
      result.hazards.push_back("the kernel threw something");
    }
    if (!channel.send(wire::pack_reply(result, t), std::nullopt)) break;
  }
  _exit(0);
}

class ProcessSut final : public Sut {
public:
  explicit ProcessSut(std::unique_ptr<Sut> inner)
      : Sut(inner->kernel()), inner_(std::move(inner)) {}
  ~ProcessSut() override { stop(); }

private:
  RunResult execute(Tensors &t) override {
    if (!channel_) start();
    const auto until = Clock::now() + patience_;
    RunResult result;
    wire::Message reply;
    if (!channel_->send(wire::pack_request(t), until) || !channel_->receive(reply, until))
      result.hazards.push_back(failure(Clock::now() >= until));
    else if (!wire::unpack_reply(reply, result, t))
      result.hazards.push_back("the kernel's process sent no sound reply");
    else
      return result;
    stop();
    return result;
  }

  void start() {
    // One at a time: a process that inherits another one's end of a channel keeps it open.
    static std::mutex starting;
    const std::lock_guard lock(starting);
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw std::runtime_error(fmt::format("no channel to a process: {}", strerror(errno)));
    // What is buffered here would be written once more by a kernel that calls exit().
    std::cout.flush();
    fflush(nullptr);
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error(fmt::format("no process: {}", strerror(errno)));
    if (pid_ == 0) {
      close(ends[0]);
      Channel channel(ends[1]);
      serve(*inner_, channel);
    }
    close(ends[1]);
    channel_.emplace(ends[0]);
  }

  /// Why there is no reply; the process has ended when this returns.
  std::string failure(bool late) {
    // A process that is about to die closes its channel a little earlier.
    for (int i = 0; !late && i < 200; ++i) {
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return death_text(status);
      }
      usleep(1000);
    }
    const auto waited = std::chrono::duration_cast<std::chrono::seconds>(patience_).count();
    patience_ = kLaterPatience;
    return late ? fmt::format("the kernel has not returned for {} s", waited)
                : "the kernel closed the channel of its process";
  }

  void stop() {
    channel_.reset();
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    pid_ = -1;
  }

  std::unique_ptr<Sut> inner_;
  std::optional<Channel> channel_;
  pid_t pid_ = -1;
  std::chrono::seconds patience_ = kFirstPatience;
};

} // namespace

std::unique_ptr<Sut> make_process_sut(std::unique_ptr<Sut> inner) {
  return std::make_unique<ProcessSut>(std::move(inner));
}

} // namespace assay
