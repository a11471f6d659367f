// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/process/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

namespace assay::process {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw ProcessError("no pipe to be had");
    read = ends[0], write = ends[1];
  }
  Pipe(const Pipe &) = delete;
  ~Pipe() { close_both(); }
  void close_write() {
    if (write >= 0) close(write);
    write = -1;
  }
  void close_both() {
    close_write();
    if (read >= 0) close(read);
    read = -1;
  }
};

/// The whole environment of the child: nothing may be allocated between fork and exec.
std::vector<std::string> environment_of(const Command &command) {
  std::vector<std::string> out;
  for (char **entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (command.environment.count(text.substr(0, text.find('='))) == 0) out.push_back(text);
  }
  for (const auto &[name, value] : command.environment)
    out.push_back(name + "=" + value);
  return out;
}

std::vector<char *> pointers(std::vector<std::string> &words) {
  std::vector<char *> out;
  for (std::string &word : words)
    out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

[[noreturn]] void become(const Command &command, char **argv, char **envp, int out, int err) {
  // A group of its own, so that what it started can be ended with it; it ends with the gate.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int none = open("/dev/null", O_RDONLY);
  dup2(none, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  if (!command.folder.empty() && chdir(command.folder.c_str()) != 0) _exit(126);
  execvpe(argv[0], argv, envp);
  _exit(127);
}

/// What is there to read; false at its end.
bool drain(int fd, std::string &to) {
  char bytes[65536];
  const ssize_t n = read(fd, bytes, sizeof bytes);
  if (n > 0) to.append(bytes, static_cast<size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

/// Reads both until both have ended; false when the time was over. Then the program alone is asked
/// to end, so that it can still report; what is left after the grace is ended with all it started.
bool collect(const Command &command, pid_t pid, Pipe &out, Pipe &err, Ended &ended) {
  constexpr int kTickMs = 200;
  constexpr double kGrace = 60;
  bool late = false;
  double asked = 0;
  const auto start = Clock::now();
  pollfd ends[2] = {{out.read, POLLIN, 0}, {err.read, POLLIN, 0}};
  std::string *to[2] = {&ended.out, &ended.err};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    poll(ends, 2, kTickMs);
    for (int i = 0; i < 2; ++i)
      if (ends[i].fd >= 0 && ends[i].revents != 0 && !drain(ends[i].fd, *to[i])) ends[i].fd = -1;
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (command.waiting) command.waiting(seconds);
    const bool over = (command.seconds > 0 && seconds >= command.seconds) ||
                      (command.stop != nullptr && *command.stop);
    if (!late && !over) continue;
    if (!late) {
      kill(pid, SIGTERM);
      late = true;
      asked = seconds;
    }
    if (seconds < asked + kGrace) continue;
    kill(-pid, SIGKILL);
    break;
  }
  return !late;
}

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

} // namespace

Ended run(const Command &command) {
  Pipe out, err;
  std::vector<std::string> words = command.words, environment = environment_of(command);
  std::vector<char *> argv = pointers(words), envp = pointers(environment);
  const pid_t pid = fork();
  if (pid < 0) throw ProcessError("no process to be had");
  if (pid == 0) become(command, argv.data(), envp.data(), out.write, err.write);
  setpgid(pid, pid);
  out.close_write();
  err.close_write();
  Ended ended;
  const bool in_time = collect(command, pid, out, err, ended);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  ended.code = in_time ? code_of(status) : 124;
  if (!command.log.empty())
    std::ofstream(command.log, std::ios::app | std::ios::binary) << ended.out << ended.err;
  if (ended.code == 127 && ended.out.empty() && ended.err.empty())
    throw ProcessError(fmt::format("{}: cannot be started", command.words[0]));
  return ended;
}

std::string last_line(const std::string &text) {
  constexpr size_t kMax = 300;
  const size_t end = text.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return "";
  const size_t begin = text.find_last_of('\n', end);
  const size_t from = begin == std::string::npos ? 0 : begin + 1;
  return text.substr(from, std::min(end - from + 1, kMax));
}

} // namespace assay::process
