// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/forker.h"

#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <span>

#include "properties/sut/child.h"

namespace assay {
namespace {

using Descriptors = std::array<int, 3>;

/// A message of one request, whose descriptors travel beside it.
class Parcel {
public:
  explicit Parcel(ForkRequest &request) : part_{&request, sizeof request} {
    header_.msg_iov = &part_;
    header_.msg_iovlen = 1;
    header_.msg_control = control_;
    header_.msg_controllen = sizeof control_;
  }
  bool send(int fd, const Descriptors &descriptors) {
    cmsghdr *control = CMSG_FIRSTHDR(&header_);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof descriptors);
    std::memcpy(CMSG_DATA(control), descriptors.data(), sizeof descriptors);
    return sendmsg(fd, &header_, MSG_NOSIGNAL) == static_cast<ssize_t>(part_.iov_len);
  }
  bool receive(int fd, Descriptors &descriptors) {
    const ssize_t got = recvmsg(fd, &header_, MSG_CMSG_CLOEXEC);
    const cmsghdr *control = CMSG_FIRSTHDR(&header_);
    if (got != static_cast<ssize_t>(part_.iov_len) || control == nullptr ||
        control->cmsg_len != CMSG_LEN(sizeof descriptors))
      return false;
    std::memcpy(descriptors.data(), CMSG_DATA(control), sizeof descriptors);
    return true;
  }

private:
  iovec part_;
  alignas(cmsghdr) char control_[CMSG_SPACE(sizeof(Descriptors))] = {};
  msghdr header_ = {};
};

/// A fork whose process is a child of this one's parent: the harness waits for it. The C library
/// does not know of it, which has only one thread here: it holds no lock and asks the system for
/// its own number where it sends a signal.
pid_t fork_for_parent() {
  return static_cast<pid_t>(syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0));
}

[[noreturn]] void serve(int fd, Forker::Body body) {
  enter_child();
  ForkRequest request;
  Descriptors d;
  while (Parcel(request).receive(fd, d)) {
    const pid_t made = fork_for_parent();
    if (made == 0) {
      close(fd);
      request.channel = d[0];
      request.memory = d[1];
      request.note = d[2];
      body(request);
      _exit(0);
    }
    for (int descriptor : d)
      close(descriptor);
    if (send(fd, &made, sizeof made, MSG_NOSIGNAL) != sizeof made) break;
  }
  _exit(0);
}

} // namespace

std::unique_ptr<Forker> Forker::start(Body body) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return nullptr;
  // What is buffered here would be written once more by a kernel that calls exit().
  std::cout.flush();
  fflush(nullptr);
  const pid_t process = ::fork();
  if (process == 0) {
    close(ends[0]);
    serve(ends[1], body);
  }
  close(ends[1]);
  if (process > 0) return std::unique_ptr<Forker>(new Forker(process, ends[0]));
  close(ends[0]);
  return nullptr;
}

Forker::~Forker() {
  close(fd_);
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

pid_t Forker::fork(const ForkRequest &request) {
  const std::lock_guard lock(one_at_a_time_);
  ForkRequest sent = request;
  pid_t made = -1;
  const bool replied = Parcel(sent).send(fd_, {request.channel, request.memory, request.note}) &&
                       recv(fd_, &made, sizeof made, 0) == sizeof made;
  return replied ? made : -1;
}

} // namespace assay
