// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace assay {

Deadline::Deadline(pid_t process, std::chrono::milliseconds patience)
    : process_(process), patience_(std::chrono::duration<double>(patience).count()),
      start_(std::chrono::steady_clock::now()) {
  used_before_ = used();
}

double Deadline::used() const {
  clockid_t clock{};
  timespec now{};
  if (clock_getcpuclockid(process_, &clock) != 0 || clock_gettime(clock, &now) != 0)
    return used_before_;
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) - used_before_;
}

bool Deadline::over() const {
  constexpr double kAsleep = 0.01, kMostPatience = 20;
  if (patience_ == 0) return false;
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start_;
  if (waited.count() < patience_) return false;
  const double spent = used();
  return spent >= patience_ || spent < kAsleep * waited.count() ||
         waited.count() >= kMostPatience * patience_;
}

int Deadline::pause() const {
  constexpr double kLongest = 0.1;
  return patience_ == 0 ? -1 : 1 + static_cast<int>(1000 * std::min(kLongest, patience_ / 4));
}

Channel::~Channel() { close(fd_); }

bool Channel::send(std::span<const std::byte> message, const Deadline &until) {
  const uint64_t size = message.size();
  return send_bytes(&size, sizeof size, until) && send_bytes(message.data(), size, until);
}

bool Channel::receive(wire::Message &message, const Deadline &until, uint64_t most) {
  uint64_t size = 0;
  if (!receive_bytes(&size, sizeof size, until) || size > most) return false;
  // Grown as it arrives.
  message.clear();
  while (message.size() < size) {
    const size_t at = message.size();
    message.resize(at + std::min<uint64_t>(size - at, uint64_t{1} << 24));
    if (!receive_bytes(message.data() + at, message.size() - at, until)) return false;
  }
  return true;
}

bool Channel::ready(short events, const Deadline &until) const {
  pollfd p{fd_, events, 0};
  for (;;) {
    const int n = poll(&p, 1, until.pause());
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
    if (until.over()) return false;
  }
}

bool Channel::send_bytes(const void *from, size_t size, const Deadline &until) {
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

bool Channel::receive_bytes(void *to, size_t size, const Deadline &until) {
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

} // namespace assay
