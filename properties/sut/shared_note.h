// SPDX-License-Identifier: Apache-2.0
// What a kernel's process notes about its fault, where the harness sees it.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "properties/sut/fault.h"

namespace assay {

/// A note that a process started later can leave; null where there is no room.
class SharedNote {
public:
  SharedNote() : SharedNote(memfd_create("assay-note", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    // A process that cuts the file would end the harness with SIGBUS.
    if (ftruncate(fd_, sizeof(FaultNote)) != 0 ||
        fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
      return;
    map();
    clear();
  }
  /// Another process's; owns the descriptor.
  explicit SharedNote(int fd) : fd_(fd) {}
  SharedNote(const SharedNote &) = delete;
  ~SharedNote() {
    if (note_ != nullptr) munmap(note_, sizeof(FaultNote));
    if (fd_ >= 0) close(fd_);
  }
  /// Null where there is none.
  FaultNote *map() {
    void *at = mmap(nullptr, sizeof(FaultNote), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    return note_ = at == MAP_FAILED ? nullptr : static_cast<FaultNote *>(at);
  }
  int fd() const { return fd_; }
  void clear() {
    if (note_ != nullptr) *note_ = FaultNote();
  }
  FaultNote *get() const { return note_; }
  /// A copy; the kernel may have written there.
  std::string text() const {
    if (note_ == nullptr) return "";
    FaultNote copy = *note_;
    copy.buffer[FaultNote::kName - 1] = '\0';
    return text_of(copy);
  }

private:
  int fd_;
  FaultNote *note_ = nullptr;
};

} // namespace assay
