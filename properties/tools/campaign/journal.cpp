// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/campaign/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "properties/tools/campaign/error.h"

namespace assay::campaign {

Journal::Journal(const std::string &folder) {
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  const std::string path = folder + "/journal.jsonl";
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) throw CampaignError(2, fmt::format("--dir {}: {}", folder, std::strerror(errno)));
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    close(fd_);
    throw CampaignError(2, fmt::format("--dir {}: another campaign runs there", folder));
  }
  try {
    read(path);
  } catch (...) {
    close(fd_);
    throw;
  }
}

Journal::~Journal() { close(fd_); }

void Journal::read(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  size_t at = 0;
  for (int number = 1; at < text.size(); ++number) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) break; // cut short while it was written
    auto line = nlohmann::json::parse(text.substr(at, end - at), nullptr, false);
    if (!line.is_object())
      throw CampaignError(2, fmt::format("{}: line {} is not JSON", path, number));
    lines_.push_back(std::move(line));
    at = end + 1;
  }
  if (at < text.size() && ftruncate(fd_, static_cast<off_t>(at)) != 0)
    throw CampaignError(4, fmt::format("{}: {}", path, std::strerror(errno)));
}

void Journal::append(const nlohmann::json &line) {
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const std::lock_guard lock(mutex_);
  const off_t before = lseek(fd_, 0, SEEK_END);
  if (write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      fdatasync(fd_) != 0) {
    const int error = errno;
    if (ftruncate(fd_, before) != 0) { // half a line is cut off when it is read
    }
    throw CampaignError(4, fmt::format("journal.jsonl: {}", std::strerror(error)));
  }
  lines_.push_back(line);
}

std::vector<nlohmann::json> Journal::lines() const {
  const std::lock_guard lock(mutex_);
  return lines_;
}

} // namespace assay::campaign
