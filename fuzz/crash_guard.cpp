// SPDX-License-Identifier: Apache-2.0
#include "fuzz/crash_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#if defined(__SANITIZE_ADDRESS__)
#define ASSAY_UNDER_ASAN true
#elif defined(__has_feature)
#define ASSAY_UNDER_ASAN (__has_feature(address_sanitizer) != 0)
#else
#define ASSAY_UNDER_ASAN false
#endif

namespace assay::fuzz {
namespace {

constexpr int kCrashed = 77; ///< libFuzzer's exit code of a crash
constexpr int kSignals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

// What a handler may look at: no heap, no locale, no stdio.
const uint8_t *input;
size_t input_size;
char artifact[4096]; ///< where the input is written, its name without the hash
struct sigaction theirs[NSIG];
time_t patience;
volatile sig_atomic_t reporting;

/// FNV-1a, as 16 digits: an input has one name.
void append_hash(char *to) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < input_size; ++i)
    hash = (hash ^ input[i]) * 0x100000001b3;
  for (int digit = 15; digit >= 0; --digit, hash >>= 4)
    to[digit] = "0123456789abcdef"[hash & 15];
  to[16] = 0;
}

void put(int file, const void *bytes, size_t size) {
  const char *at = static_cast<const char *>(bytes);
  while (size > 0) {
    const ssize_t written = write(file, at, size);
    if (written <= 0) return;
    at += written;
    size -= static_cast<size_t>(written);
  }
}

void say(const char *text) { put(STDERR_FILENO, text, std::strlen(text)); }

[[noreturn]] void end_without_the_heap(int) {
  append_hash(artifact + std::strlen(artifact));
  const int file = open(artifact, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file >= 0) put(file, input, input_size);
  say("\nVIOLATION: a crash whose report does not end, as of a corrupted heap\n");
  say(file >= 0 ? "Test unit written to " : "Test unit could not be written to ");
  say(artifact);
  say("\n");
  _exit(kCrashed);
}

/// In place of libFuzzer's handler, which it calls.
void crashed(int signal, siginfo_t *info, void *context) {
  if (reporting != 0) end_without_the_heap(signal);
  reporting = 1;
  struct sigaction late {};
  late.sa_handler = end_without_the_heap;
  sigaction(SIGALRM, &late, nullptr);
  const itimerval soon{{0, 0}, {patience, 0}};
  setitimer(ITIMER_REAL, &soon, nullptr);
  theirs[signal].sa_sigaction(signal, info, context);
}

/// What libFuzzer was given as -artifact_prefix, the last of them.
std::string artifact_prefix() {
  std::ifstream arguments("/proc/self/cmdline", std::ios::binary);
  const std::string flag = "-artifact_prefix=";
  std::string prefix = "./";
  for (std::string word; std::getline(arguments, word, '\0');)
    if (word.starts_with(flag)) prefix = word.substr(flag.size());
  return prefix;
}

/// Around those handlers that libFuzzer has set by now.
void install() {
  const std::string name = artifact_prefix() + "crash-";
  if (name.size() + 17 > sizeof artifact) return;
  std::memcpy(artifact, name.c_str(), name.size() + 1);
  for (const int signal : kSignals) {
    if (sigaction(signal, nullptr, &theirs[signal]) != 0) continue;
    if ((theirs[signal].sa_flags & SA_SIGINFO) == 0) continue; // nobody reports this one
    struct sigaction ours = theirs[signal];
    ours.sa_sigaction = crashed;
    ours.sa_flags |= SA_NODEFER; // a report that crashes is noticed
    sigaction(signal, &ours, nullptr);
  }
}

} // namespace

void guard_crashes(const uint8_t *data, size_t size, int seconds) {
  if (ASSAY_UNDER_ASAN) return; // it reports what happens to the heap by itself
  static const bool installed = (install(), true);
  static_cast<void>(installed);
  patience = seconds;
  input = data;
  input_size = size;
}

} // namespace assay::fuzz
