// SPDX-License-Identifier: Apache-2.0
// What the program knows of itself at run time: where kept findings lie, and what --version says.
#include "properties/cli/findings/kept_folder.h"

#include "properties/cli/session/version.h"
#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

class KeptFolder : public InOwnFolder {
protected:
  /// Made, and as kept_folder() names it.
  std::string folder(const std::string &name) const {
    fs::create_directories(folder_ / name);
    return fs::canonical(folder_ / name).string();
  }
  std::string found(const std::string &program_folder, const std::string &current) const {
    return kept_folder(folder_ / program_folder, folder_ / current);
  }
};

TEST_F(KeptFolder, AnInstalledProgramHasItsOwn) {
  const std::string installed = folder("usr/share/assay/findings");
  folder("usr/bin");
  folder("elsewhere/corpus/findings");
  EXPECT_EQ(found("usr/bin", "elsewhere"), installed);
  // This holds for a prefix inside a source tree, too.
  folder("corpus/findings");
  EXPECT_EQ(found("usr/bin", "elsewhere"), installed);
}

TEST_F(KeptFolder, AProgramOfABuildFolderHasThoseOfItsTree) {
  const std::string tree = folder("tree/corpus/findings");
  folder("tree/build/simt");
  folder("other/corpus/findings");
  EXPECT_EQ(found("tree/build/simt", "other"), tree);
  // A build folder outside of the tree has a link.
  folder("build/corpus");
  fs::create_directory_symlink(tree, folder_ / "build/corpus/findings");
  EXPECT_EQ(found("build", "other"), tree);
}

TEST_F(KeptFolder, ElseThoseAroundTheCurrentFolder) {
  const std::string here = folder("here/corpus/findings");
  folder("here/deep/er");
  folder("bin");
  EXPECT_EQ(found("bin", "here/deep/er"), here);
  EXPECT_EQ(found("nowhere", "here"), here);
  std::ofstream(folder_ / "here/deep/corpus") << "no folder";
  EXPECT_EQ(found("bin", "here/deep/er"), here);
}

TEST_F(KeptFolder, NoneIsSaid) { EXPECT_EQ(found("bin", "."), ""); }

TEST(Version, NamesCommitTargetsAndAbi) {
  const std::string text = version_text(reference::plugin(), "0123456789ab-dirty");
  EXPECT_EQ(text.rfind("assay ", 0), 0u);
  EXPECT_EQ(text.find("unknown"), text.npos) << text;
  EXPECT_NE(text.find("\ncommit 0123456789ab-dirty\ntargets simt\nABI "), text.npos) << text;
  assay_kernel kernel = reference::kernel("reference_merge_state");
  kernel.target = ASSAY_TARGET_CUDA;
  EXPECT_NE(version_text(one_kernel(kernel), "").find("\ntargets cuda\n"), std::string::npos);
}

TEST(Version, IsWhatTheProgramPrints) {
  const Ran r = assay_program({"--version"});
  EXPECT_EQ(r.code, kExitPass);
  EXPECT_EQ(r.out, version_text(reference::plugin(), "unknown") + "\n");
}

} // namespace
} // namespace assay
