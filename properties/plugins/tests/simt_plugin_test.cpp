// SPDX-License-Identifier: Apache-2.0
// `assay new plugin --simt`: its kernel is right as it stands. Mistakes in it are reported in the
// first case, with the lines of both parties.
#include "properties/plugins/project.h"
#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

using plugins::Kind;
using plugins::Language;

struct Mistake {
  const char *name;
  const char *from, *to; ///< a part of kernel.cuh, and what stands there by mistake
  const char *said;      ///< of the finding
  int lines;             ///< of the kernel that the finding names, at least
};

constexpr Mistake kMistakes[] = {
    {"full_parity", "full[stage.index], stage.round)", "full[stage.index], stage.round ^ 1)",
     "async-in-flight-read", 2},
    {"expects_keys_alone", "kBytes = 2 * kTile", "kBytes = kTile", "mbarrier-misuse", 2},
    {"init_not_fenced", "arch::fence_mbarrier_init();", "", "missing-fence", 2},
    {"released_by_lane_0", "arch::warp_barrier();", "", "unordered-access", 2},
    {"merged_too_early", "arch::named_barrier(1, 32 * kConsumers);", "", "unordered-access", 2},
    {"tail_keys_seen", "from <= key && key < to ? own : arch::neg_infinity()", "own", "outside", 0},
};

size_t count(const std::string &text, const std::string &word) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size())
    ++found;
  return found;
}

/// The project's kernels with a mistake each, in one library: a compilation costs seconds.
class SimtPlugin : public Cli {
protected:
  void write(const std::string &folder, const Mistake *mistake) const {
    fs::create_directories(folder);
    for (auto file : plugins::project_files(Kind::kPaged, Language::kSimt, folder)) {
      if (mistake != nullptr && file.path == "kernel.cuh")
        replace_once(file.text, mistake->from, mistake->to);
      std::ofstream(fs::path(folder) / file.path, std::ios::binary) << file.text;
    }
  }

  std::string compiled() const {
    write("right", nullptr);
    std::string all = "#include <assay/plugin.h>\n#define assay_plugin_entry entry\n"
                      "#include \"right/kernel.cpp\"\n";
    std::string rows = "*entry(v)->kernels";
    for (const Mistake &m : kMistakes) {
      write(m.name, &m);
      all += std::string("namespace ") + m.name + " {\n#include \"" + m.name + "/kernel.cpp\"\n}\n";
      rows += std::string(", *") + m.name + "::entry(v)->kernels";
    }
    all += "#undef assay_plugin_entry\nconst assay_plugin *assay_plugin_entry(uint32_t v) {\n"
           "  static const assay_kernel kernels[] = {" +
           rows +
           "};\n"
           "  static assay_plugin plugin = *entry(v);\n  plugin.kernels = kernels;\n"
           "  plugin.num_kernels = sizeof kernels / sizeof *kernels;\n  return &plugin;\n}\n";
    fs::create_directories("include");
    fs::create_directory_symlink(fs::path(ASSAY_SOURCES) / "kernels/abi", "include/assay");
    const std::string command =
        ASSAY_COMPILER " -std=c++20 -Wall -Werror -shared -fPIC -ffp-contract=off"
                       " -Iinclude -I. -I" ASSAY_SOURCES " -o all.so " +
        file("all.cpp", all) + " " ASSAY_ARCH_LIBRARY " " ASSAY_EXECUTOR_LIBRARY " -lboost_context";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return path("all.so");
  }

  Ran check(const std::string &library, const std::string &kernel, const char *cases) const {
    return assay_program({"check", "--plugin", library, "--kernel", kernel, "--property",
                          "within_budget", "--cases", cases, "--fail-fast", "--findings",
                          folder_.string(), "--out", path(kernel + "-found")});
  }
};

TEST_F(SimtPlugin, IsRightAsItStandsAndEachMistakeIsFoundByOneCase) {
  const std::string library = compiled();
  const Ran right = check(library, "right", "2");
  EXPECT_EQ(right.code, kExitPass) << right.out << right.err;
  for (const Mistake &m : kMistakes) {
    const Ran r = check(library, m.name, "1");
    EXPECT_EQ(r.code, kExitFinding) << m.name << r.out << r.err;
    const size_t begin = std::min(r.out.find("FINDING"), r.out.size());
    const std::string finding = r.out.substr(begin, r.out.find('\n', begin) - begin);
    EXPECT_NE(finding.find(m.said), std::string::npos) << m.name << "\n" << finding;
    EXPECT_GE(count(finding, "kernel.cuh:"), static_cast<size_t>(m.lines)) << finding;
  }
}

TEST_F(Cli, NewPluginWritesTheExecutorsProject) {
  const Ran r =
      assay_program({"new", "plugin", "mine", "--simt", "--like", "fa2", "--name", "quick"});
  ASSERT_EQ(r.code, kExitPass) << r.err;
  for (const char *file :
       {"README.md", "CMakeLists.txt", "kernel.cuh", "kernel.cpp", "assay.toml"}) {
    const std::string text = read_text(fs::path("mine") / file);
    EXPECT_FALSE(text.empty()) << file;
    for (const char *word : {"my_kernel", "@KERNEL", "@TARGET", "@EXTENSION"})
      EXPECT_EQ(text.find(word), std::string::npos) << file << " " << word;
  }
  EXPECT_FALSE(fs::exists("mine/include")); // the headers of the executor's assay
  EXPECT_NE(read_text("mine/kernel.cpp").find("As fa2 ("), std::string::npos);
  for (const char *other : {"--cascade", "--merge"})
    expect_error(assay_program({"new", "plugin", "other", "--simt", other}), kExitUsage,
                 "--simt writes a kernel of paged attention alone");
  expect_error(assay_program({"new", "plugin", "other", "--simt", "--cuda"}), kExitUsage,
               "one of --simt, --cuda and --python at most");
  EXPECT_FALSE(fs::exists("other"));
}

} // namespace
} // namespace assay
