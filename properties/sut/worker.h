// SPDX-License-Identifier: Apache-2.0
// A program of somebody else that runs kernels for the harness: started with a command, spoken to
// over a socket (descriptor 3) in JSON, with the memory of a case shared with it (descriptor 4).
// KERNELS.md of properties/python has the messages.
#pragma once

#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "properties/sut/child.h"
#include "properties/sut/shared_memory.h"

namespace assay {

/// The worker cannot be started or says something else than before: nobody's case.
struct WorkerError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct WorkerCommand {
  std::string line; ///< split into words as a shell would; no pipes, no other commands
  std::chrono::milliseconds patience = kFirstPatience; ///< with its start, and with a call
};

/// One process of a worker; used by one thread at a time.
class Worker {
public:
  explicit Worker(const WorkerCommand &command);
  Worker(const Worker &) = delete;
  ~Worker();

  /// Starts it where it does not run, and takes its hello. Throws WorkerError.
  void start();
  void stop() { child_.stop(); }
  double spent() const { return child_.spent(); } ///< see Child
  bool alive() { return child_.started() && child_.alive(); }
  /// Its process ends with the thread that started it.
  std::thread::id starter() const { return starter_; }
  /// The JSON with which it introduced itself.
  const std::string &hello() const { return hello_; }
  SharedMemory &memory() { return memory_; }
  /// Sends a message and takes the reply. Otherwise false and why, with the last lines that the
  /// process wrote to its output; it is stopped then.
  bool ask(const std::string &message, std::string &reply, Hazard &why);

private:
  void execute(int channel);
  bool exchange(const std::string *message, std::string &reply, Hazard &why);
  std::string last_output() const;

  std::vector<std::string> words_;
  std::vector<char *> argv_; ///< pointers into words_
  std::string line_, hello_;
  std::thread::id starter_;
  SharedMemory memory_;
  int output_ = -1; ///< what it writes to its standard output and error
  Child child_;
};

/// Started workers of one command, handed from check to check of a thread: starting one takes
/// seconds.
class WorkerPool {
public:
  explicit WorkerPool(WorkerCommand command) : command_(std::move(command)) {}
  /// One that runs, and that introduced itself as the first one did. Throws WorkerError.
  std::unique_ptr<Worker> take();
  /// Started again where it was stopped, under the same condition.
  void restart(Worker &worker);
  void give_back(std::unique_ptr<Worker> worker);
  const std::string &command() const { return command_.line; }

private:
  WorkerCommand command_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
  std::string hello_; ///< hello of the first process
};

} // namespace assay
