// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/fault.h"

#include <algorithm>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

namespace assay {
namespace {

struct NamedBuffer {
  uintptr_t begin, end;
  char name[FaultNote::kName];
};

// A handler may neither allocate nor lock.
constexpr size_t kMostBuffers = 64;
FaultNote *note_of_process = nullptr;
NamedBuffer buffers[kMostBuffers];
size_t buffer_count = 0;
alignas(16) char handler_stack[1 << 16]; // a kernel may have used up its own

uintptr_t distance_of(const NamedBuffer &b, uintptr_t address) {
  return address < b.begin ? b.begin - address : address < b.end ? 0 : address - b.end + 1;
}

void fill(FaultNote &note, uintptr_t address) {
  note.address = address;
  const NamedBuffer *nearest = nullptr;
  for (size_t i = 0; i < buffer_count; ++i)
    if (nearest == nullptr || distance_of(buffers[i], address) < distance_of(*nearest, address))
      nearest = &buffers[i];
  if (nearest != nullptr) {
    std::memcpy(note.buffer, nearest->name, sizeof note.buffer);
    note.size = nearest->end - nearest->begin;
    note.inside = distance_of(*nearest, address) == 0;
    note.distance = address < nearest->begin ? -static_cast<int64_t>(nearest->begin - address)
                                             : static_cast<int64_t>(address - nearest->end);
  }
  note.taken = true;
}

/// The instruction faults once more when this returns, and then the process dies.
void on_fault(int signal, siginfo_t *info, void *) {
  if (!note_of_process->taken) fill(*note_of_process, reinterpret_cast<uintptr_t>(info->si_addr));
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  sigaction(signal, &usual, nullptr);
}

} // namespace

void note_faults(FaultNote *note) {
  note_of_process = note;
  stack_t stack = {};
  stack.ss_sp = handler_stack;
  stack.ss_size = sizeof handler_stack;
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS})
    sigaction(signal, &action, nullptr);
}

void forget_buffers_near_faults() { buffer_count = 0; }

void note_buffer_near_faults(const void *data, size_t bytes, const std::string &name) {
  if (note_of_process == nullptr || buffer_count == kMostBuffers) return;
  NamedBuffer &b = buffers[buffer_count++];
  b.begin = reinterpret_cast<uintptr_t>(data);
  b.end = b.begin + bytes;
  const size_t length = std::min(name.size(), sizeof b.name - 1);
  std::memset(b.name, 0, sizeof b.name);
  std::memcpy(b.name, name.data(), length);
}

std::string text_of(const FaultNote &note) {
  constexpr uint64_t kFirstPage = 4096;
  constexpr int64_t kFar = int64_t{1} << 40; // in no neighbourhood
  if (!note.taken) return "";
  if (note.address < kFirstPage)
    return fmt::format(
        " at address {:#x}, where nothing is: a null pointer, or one that is no address",
        note.address);
  if (note.buffer[0] == '\0' || note.distance > kFar || note.distance < -kFar)
    return fmt::format(" at address {:#x}, far from every buffer of the call", note.address);
  if (note.inside) return fmt::format(" at {}, which it must not write", note.buffer);
  return fmt::format(
      " {} bytes {} {}, which has {}", note.distance < 0 ? -note.distance : note.distance,
      note.distance < 0 ? "in front of" : "behind the end of", note.buffer, note.size);
}

} // namespace assay
