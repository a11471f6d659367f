// SPDX-License-Identifier: Apache-2.0
// Tables that a plugin may hand over and that must be refused in one line, each by its field.
#include "properties/cli/plugins/plugin_loader.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>

#include <gtest/gtest.h>

#include "properties/cli/session/streams.h"
#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

/// The reference plugin, to be corrupted.
struct Table {
  assay_plugin plugin = reference::plugin();
  std::vector<assay_kernel> kernels{plugin.kernels, plugin.kernels + plugin.num_kernels};

  Table() { plugin.kernels = kernels.data(); }
};

struct Refusal {
  int code = kExitPass;
  std::string text;
};

Refusal refusal_of(const std::function<void()> &body) {
  try {
    body();
  } catch (const CliError &e) {
    return {e.code, e.what()};
  }
  return {};
}
Refusal refusal_of(const assay_plugin *plugin) {
  return refusal_of([&] { check_plugin("p.so", plugin); });
}

void expect_refusal(const std::function<void(Table &)> &corrupt, int code,
                    const std::string &text) {
  Table table;
  corrupt(table);
  const Refusal refusal = refusal_of(&table.plugin);
  EXPECT_EQ(refusal.code, code) << text;
  EXPECT_EQ(refusal.text, text);
}

/// Corrupts the second kernel.
void expect_kernel_refusal(const std::function<void(assay_kernel &)> &corrupt,
                           const std::string &why) {
  expect_refusal([&](Table &t) { corrupt(t.kernels[1]); }, kExitUsage,
                 "p.so: kernels[1] 'reference_v2': " + why);
}

TEST(PluginTable, OfTheReferenceKernelsIsAccepted) {
  Table table;
  EXPECT_EQ(refusal_of(&table.plugin).text, "");
  table.plugin.num_kernels = 0;
  table.plugin.kernels = nullptr;
  EXPECT_EQ(refusal_of(&table.plugin).text, ""); // nothing to run: the commands say so
}

TEST(PluginTable, OfAnotherVersionIsUnsupported) {
  auto versions = [](uint32_t major, uint32_t minor) {
    return [=](Table &t) {
      t.plugin.abi_major = major;
      t.plugin.abi_minor = minor;
    };
  };
  const std::string serves = ", this program serves 0.13 to " + std::to_string(ASSAY_ABI_MAJOR) +
                             "." + std::to_string(ASSAY_ABI_MINOR);
  expect_refusal(versions(0, 2), kExitUnsupported, "p.so: is of ABI version 0.2" + serves);
  expect_refusal(versions(0, 99), kExitUnsupported, "p.so: is of ABI version 0.99" + serves);
  expect_refusal(versions(1, ASSAY_ABI_MINOR), kExitUnsupported,
                 "p.so: is of ABI version 1." + std::to_string(ASSAY_ABI_MINOR) + serves);
  EXPECT_EQ(refusal_of(nullptr).code, kExitUnsupported);
}

// Nothing behind the first three fields of another version is read: there is nothing (ASan).
TEST(PluginTable, OfAnotherVersionIsNotReadFurther) {
  auto words = std::make_unique<uint32_t[]>(3);
  words[0] = 12;
  words[1] = ASSAY_ABI_MAJOR;
  words[2] = ASSAY_ABI_MINOR + 1;
  EXPECT_EQ(refusal_of(reinterpret_cast<const assay_plugin *>(words.get())).code, kExitUnsupported);
}

// The array's stride is the plugin's own: a kernel of another size ends the walk at the first one.
TEST(PluginTable, SizesMustBeThoseOfTheHeader) {
  const std::string plugin_size = std::to_string(sizeof(assay_plugin));
  const std::string kernel_size = std::to_string(sizeof(assay_kernel));
  expect_refusal([](Table &t) { t.plugin.struct_size = 0; }, kExitUsage,
                 "p.so: struct_size is 0, expected " + plugin_size);
  expect_refusal([](Table &t) { t.kernels[0].struct_size = 4; }, kExitUsage,
                 "p.so: kernels[0]: struct_size is 4, expected " + kernel_size);
  auto word = std::make_unique<uint32_t>(4u);
  Table table;
  table.plugin.kernels = reinterpret_cast<const assay_kernel *>(word.get());
  EXPECT_EQ(refusal_of(&table.plugin).code, kExitUsage);
}

// A header that ended in front of the capabilities: its kernels have none.
TEST(PluginTable, KernelsOfAnEarlierHeaderAreContinuedByZeros) {
  const Table table;
  const size_t size = offsetof(assay_kernel, capabilities);
  std::vector<char> rows;
  for (const assay_kernel &kernel : table.kernels) {
    assay_kernel earlier = kernel;
    earlier.struct_size = static_cast<uint32_t>(size);
    rows.insert(rows.end(), reinterpret_cast<char *>(&earlier),
                reinterpret_cast<char *>(&earlier) + size);
  }
  const auto count = static_cast<int32_t>(table.kernels.size());
  const std::vector<assay_kernel> now = continued_rows(rows.data(), size, count);
  for (size_t i = 0; i < now.size(); ++i) {
    EXPECT_STREQ(now[i].name, table.kernels[i].name);
    EXPECT_EQ(now[i].run, table.kernels[i].run);
    EXPECT_EQ(now[i].struct_size, sizeof(assay_kernel));
    EXPECT_EQ(now[i].capabilities, 0u);
  }
}

TEST(PluginTable, TheArrayIsThereAndOfASensibleLength) {
  for (int32_t count : {-1, 4097, std::numeric_limits<int32_t>::min()})
    expect_refusal([=](Table &t) { t.plugin.num_kernels = count; }, kExitUsage,
                   "p.so: num_kernels is " + std::to_string(count) + ", expected 0 .. 4096");
  expect_refusal([](Table &t) { t.plugin.kernels = nullptr; }, kExitUsage, "p.so: kernels is null");
}

TEST(PluginTable, NamesArePrintableAndUnique) {
  expect_refusal([](Table &t) { t.plugin.name = nullptr; }, kExitUsage, "p.so: name is null");
  expect_refusal([](Table &t) { t.plugin.name = "a\nb"; }, kExitUsage,
                 "p.so: name is not 1 to 100 printable characters");
  expect_refusal([](Table &t) { t.kernels[2].name = nullptr; }, kExitUsage,
                 "p.so: kernels[2]: name is null");
  const std::string longest(100, 'x'), longer(101, 'x');
  for (const char *name :
       {"", "a b", "../x", "x#1", "\x1b[2J", "na\nme", "caf\xc3\xa9", "\x7f", longer.c_str()})
    expect_refusal(
        [=](Table &t) { t.kernels[2].name = name; }, kExitUsage,
        "p.so: kernels[2]: name is not 1 to 100 printable characters without space, '/' and '#'");
  expect_refusal([&](Table &t) { t.kernels[2].name = longest.c_str(); }, kExitPass, "");
  expect_refusal([](Table &t) { t.kernels[2].name = "reference_v1"; }, kExitUsage,
                 "p.so: kernels[2] 'reference_v1': name stands there twice for target simt");
  // Our own table has each kernel once per target.
  expect_refusal(
      [](Table &t) {
        t.kernels[2].name = "reference_v1";
        t.kernels[2].target = ASSAY_TARGET_CUDA;
      },
      kExitPass, "");
}

TEST(PluginTable, EnumsAreThoseOfTheHeader) {
  for (int32_t value : {-1, 4, 9})
    expect_kernel_refusal([=](assay_kernel &k) { k.family = value; },
                          "family is " + std::to_string(value) + ", expected 0 .. 3");
  for (int32_t value : {-1, 2}) {
    expect_kernel_refusal([=](assay_kernel &k) { k.target = value; },
                          "target is " + std::to_string(value) + ", expected 0 .. 1");
    expect_kernel_refusal([=](assay_kernel &k) { k.determinism = value; },
                          "determinism is " + std::to_string(value) + ", expected 0 .. 1");
  }
  for (int32_t value : {-1, 4})
    expect_kernel_refusal([=](assay_kernel &k) { k.nan_contract = value; },
                          "nan_contract is " + std::to_string(value) + ", expected 0 .. 3");
  expect_kernel_refusal([](assay_kernel &k) { k.capabilities = 17; },
                        "capabilities is 17, expected bits of 15");
  expect_kernel_refusal([](assay_kernel &k) { k.family = ASSAY_FAMILY_CASCADE; },
                        "ragged_queries is 1, expected 0");
  for (int32_t value : {-1, 3})
    expect_kernel_refusal([=](assay_kernel &k) { k.batch_invariance = value; },
                          "batch_invariance is " + std::to_string(value) + ", expected 0 .. 2");
}

TEST(PluginTable, OnlyTheOptionalCallsMayBeNull) {
  expect_kernel_refusal([](assay_kernel &k) { k.supports = nullptr; }, "supports is null");
  expect_kernel_refusal([](assay_kernel &k) { k.run = nullptr; }, "run is null");
  expect_kernel_refusal([](assay_kernel &k) { k.last_error = nullptr; }, "last_error is null");
  expect_kernel_refusal([](assay_kernel &k) { k.plan = k.run; }, "plan_size beside a plan is null");
  expect_kernel_refusal([](assay_kernel &k) { k.plan_size = k.workspace_size; },
                        "plan beside a plan_size is null");
  expect_refusal([](Table &t) { t.kernels[1].workspace_size = nullptr; }, kExitPass, "");
}

// The ranges are oracle/tests/declaration_test.cpp's.
TEST(PluginTable, ADeclarationThatBoundsNothingIsRefused) {
  expect_kernel_refusal([](assay_kernel &k) { k.arithmetic.rcp_rel_error = NAN; },
                        "arithmetic.rcp_rel_error is nan, expected 0 to below 1");
  expect_kernel_refusal([](assay_kernel &k) { k.arithmetic.mma_block = -1; },
                        "arithmetic.mma_block is -1, expected 0 .. 1024");
}

class PluginFile : public InOwnFolder {
protected:
  static std::string error_of(const std::string &path) {
    const Refusal refusal = refusal_of([&] { load_plugin(path); });
    EXPECT_EQ(refusal.code, kExitUsage);
    return refusal.text;
  }
};

// dlopen looks a name without a slash up in the system's folders.
TEST_F(PluginFile, OfTheCurrentFolderNeedsNoSlash) {
  fs::copy_file(ASSAY_REFERENCE_PLUGIN, "own.so");
  EXPECT_STREQ(load_plugin("own.so")->name, "reference");
}

TEST_F(PluginFile, ThatCannotBeLoadedIsNamedOnce) {
  std::ofstream("bad.so") << "not a library, but long enough to have the header of one in front";
  const std::string bad = error_of("bad.so");
  EXPECT_EQ(bad.rfind("bad.so: ", 0), 0u) << bad;
  EXPECT_EQ(bad.find("bad.so", 1), std::string::npos) << bad;
  EXPECT_EQ(error_of("absent.so"),
            "absent.so: cannot open shared object file: No such file or directory");
  EXPECT_EQ(error_of("libm.so.6"),
            "libm.so.6: cannot open shared object file: No such file or directory");
}

} // namespace
} // namespace assay
