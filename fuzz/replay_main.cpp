// SPDX-License-Identifier: Apache-2.0
// main() of a fuzz target without libFuzzer: runs it once on every file named, folders recursively.
// Exit status: 0 all hold, 2 when there was nothing to replay; a violation aborts after the line
// that names its file.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_under(const fs::path &path) {
  std::vector<fs::path> files;
  if (fs::is_directory(path)) {
    for (const auto &entry : fs::recursive_directory_iterator(path))
      if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
  } else {
    files.push_back(path);
  }
  return files;
}

bool replay(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    return false;
  }
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  std::printf("%s (%zu bytes)\n", path.c_str(), bytes.size());
  std::fflush(stdout);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
  return true;
}

} // namespace

int main(int argc, char **argv) {
  int inputs = 0;
  for (int i = 1; i < argc; ++i)
    for (const fs::path &path : files_under(argv[i])) {
      if (!replay(path)) return 2;
      ++inputs;
    }
  if (inputs == 0) {
    std::fprintf(stderr, "nothing to replay; usage: %s FILE|FOLDER...\n", argv[0]);
    return 2;
  }
  std::printf("%d inputs replayed\n", inputs);
  return 0;
}
