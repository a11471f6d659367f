// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/worker.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wordexp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace assay {
namespace {

constexpr uint64_t kMaxReply = uint64_t{1} << 20;
constexpr int kChannelFd = 3, kMemoryFd = 4;
/// What is shown of a worker's output.
constexpr off_t kShownOutput = 4096;
constexpr size_t kShownLines = 20;

int output_file() {
  const int fd = memfd_create("assay-output", MFD_CLOEXEC);
  if (fd < 0) throw WorkerError(fmt::format("no room for a worker's output: {}", strerror(errno)));
  return fd;
}

std::vector<std::string> split_words(const std::string &line) {
  wordexp_t found{};
  const int error = wordexp(line.c_str(), &found, WRDE_NOCMD | WRDE_UNDEF);
  if (error != 0)
    throw WorkerError("not one command: quotes do not match, a variable is not set, or it holds "
                      "one of | & ; < > ( ) { } ` outside quotes");
  std::vector<std::string> words(found.we_wordv, found.we_wordv + found.we_wordc);
  wordfree(&found);
  if (words.empty()) throw WorkerError("is empty");
  return words;
}

std::string text_of(const wire::Message &message) {
  const auto *at = reinterpret_cast<const char *>(message.data());
  return std::string(at, at + message.size());
}

} // namespace

Worker::Worker(const WorkerCommand &command)
    : words_(split_words(command.line)), line_(command.line), output_(output_file()),
      child_(command.patience) {
  fcntl(output_, F_SETFL, O_APPEND);
  for (std::string &word : words_)
    argv_.push_back(word.data());
  argv_.push_back(nullptr);
}

Worker::~Worker() {
  child_.stop();
  close(output_);
}

/// In the new process. Between fork and exec beside threads: system calls only.
void Worker::execute(int channel) {
  enter_child();
  setpgid(0, 0); // what it starts itself ends with it
  const rlimit memory{kMaxChildMemory, kMaxChildMemory};
  setrlimit(RLIMIT_DATA, &memory); // what a device driver only reserves does not count
  // Out of the way first: any of them may be the number that another one goes to.
  constexpr int kAbove = 16;
  const int at = fcntl(channel, F_DUPFD, kAbove), memory_at = fcntl(memory_.fd(), F_DUPFD, kAbove),
            output_at = fcntl(output_, F_DUPFD, kAbove), null_at = open("/dev/null", O_RDONLY);
  dup2(null_at, STDIN_FILENO);
  dup2(output_at, STDOUT_FILENO);
  dup2(output_at, STDERR_FILENO);
  dup2(at, kChannelFd);
  dup2(memory_at, kMemoryFd);
  close_range(kMemoryFd + 1, ~0u, 0);
  execvp(argv_[0], argv_.data());
  const char *why = strerrordesc_np(errno);
  for (const char *part : {static_cast<const char *>(argv_[0]), ": ", why, "\n"})
    if (write(STDERR_FILENO, part, strlen(part)) < 0) break;
  _exit(127);
}

void Worker::start() {
  if (child_.started()) return;
  starter_ = std::this_thread::get_id();
  child_.start([this](int fd) { execute(fd); });
  std::string hello;
  Hazard why;
  if (!exchange(nullptr, hello, why))
    throw WorkerError(fmt::format("worker '{}' did not start: {}", line_, why.text));
  hello_ = std::move(hello);
}

bool Worker::ask(const std::string &message, std::string &reply, Hazard &why) {
  return exchange(&message, reply, why);
}

bool Worker::exchange(const std::string *message, std::string &reply, Hazard &why) {
  // What is shown are the last lines of this call, and no more are kept.
  if (message != nullptr && ftruncate(output_, 0) != 0)
    throw WorkerError(fmt::format("cannot empty the worker's output: {}", strerror(errno)));
  const Deadline until = child_.deadline();
  wire::Message bytes;
  if ((message == nullptr || child_.channel().send(std::as_bytes(std::span(*message)), until)) &&
      child_.channel().receive(bytes, until, kMaxReply)) {
    reply = text_of(bytes);
    return true;
  }
  why = child_.failure(until);
  child_.stop();
  if (const std::string output = last_output(); !output.empty()) why.text += "\n" + output;
  return false;
}

/// Its last lines, indented; as much as a reader may want.
std::string Worker::last_output() const {
  struct stat now {};
  if (fstat(output_, &now) != 0) return "";
  std::string text(static_cast<size_t>(std::min(now.st_size, kShownOutput)), '\0');
  const ssize_t n =
      pread(output_, text.data(), text.size(), now.st_size - static_cast<off_t>(text.size()));
  text.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  size_t from = text.size();
  for (size_t lines = 0; from > 0; --from)
    if (text[from - 1] == '\n' && ++lines == kShownLines) break;
  std::string out;
  for (char c : text.substr(from)) {
    if (out.empty() || out.back() == '\n') out += "  | ";
    out += c == '\n' || (c >= ' ' && c <= '~') ? c : '?';
  }
  return out;
}

std::unique_ptr<Worker> WorkerPool::take() {
  std::unique_ptr<Worker> worker;
  {
    const std::lock_guard lock(mutex_);
    const auto own = std::find_if(idle_.begin(), idle_.end(), [](const auto &w) {
      return w->starter() == std::this_thread::get_id();
    });
    if (own != idle_.end()) {
      worker = std::move(*own);
      idle_.erase(own);
    }
  }
  // One that ended between two checks was running no case.
  if (worker && !worker->alive()) worker->stop();
  if (!worker) worker = std::make_unique<Worker>(command_);
  restart(*worker);
  return worker;
}

void WorkerPool::restart(Worker &worker) {
  worker.start();
  const std::lock_guard lock(mutex_);
  if (hello_.empty()) hello_ = worker.hello();
  if (hello_ == worker.hello()) return;
  worker.stop();
  throw WorkerError(fmt::format(
      "worker '{}' introduces itself otherwise than when it was first started", command_.line));
}

void WorkerPool::give_back(std::unique_ptr<Worker> worker) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(worker));
}

} // namespace assay
