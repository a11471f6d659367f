// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace assay {

Channel::~Channel() { close(fd_); }

bool Channel::send(std::span<const std::byte> message, Deadline until) {
  const uint64_t size = message.size();
  return send_bytes(&size, sizeof size, until) && send_bytes(message.data(), size, until);
}

bool Channel::receive(wire::Message &message, Deadline until, uint64_t most) {
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

bool Channel::ready(short events, Deadline until) const {
  using namespace std::chrono;
  pollfd p{fd_, events, 0};
  for (;;) {
    int wait = -1;
    if (until) {
      const auto left = duration_cast<milliseconds>(*until - steady_clock::now()).count();
      if (left <= 0) return false;
      wait = static_cast<int>(left) + 1;
    }
    const int n = poll(&p, 1, wait);
    if (n > 0) return true;
    if (n == 0 || errno != EINTR) return false;
  }
}

bool Channel::send_bytes(const void *from, size_t size, Deadline until) {
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

bool Channel::receive_bytes(void *to, size_t size, Deadline until) {
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
