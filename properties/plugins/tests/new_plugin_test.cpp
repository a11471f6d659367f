// SPDX-License-Identifier: Apache-2.0
// `assay new plugin`: what it refuses, and that what it writes is a right kernel as it stands.
#include "properties/plugins/arithmetics.h"
#include "properties/plugins/project.h"
#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

using plugins::Kind;
using plugins::Language;

/// The library of a project's kernel.cpp, made with the headers of this tree. Under another name
/// each time: the loader keeps what it loaded from a path.
std::string compiled(const fs::path &project, const std::string &name) {
  const fs::path headers = project / "include";
  fs::create_directories(headers);
  if (!fs::exists(headers / "assay"))
    fs::create_directory_symlink(fs::path(ASSAY_SOURCES) / "kernels/abi", headers / "assay");
  const std::string library = (project / name).string();
  const std::string command = ASSAY_COMPILER " -std=c++20 -O1 -Wall -Werror -shared -fPIC -I" +
                              headers.string() + " -o " + library + " " +
                              (project / "kernel.cpp").string();
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return library;
}

void edit(const fs::path &path, const std::string &from, const std::string &to) {
  std::string text = read_text(path);
  replace_once(text, from, to);
  std::ofstream(path, std::ios::binary) << text;
}

struct Template {
  const char *flag, *line, *wrong; ///< a line of the right kernel, and what it may be by mistake
};

class NewPluginOf : public Cli, public testing::WithParamInterface<Template> {};

TEST_P(NewPluginOf, IsRightAsItStandsAndWrongAfterAMistake) {
  const Template &t = GetParam();
  Ran r = assay_program({"new", "plugin", "mine", t.flag, "--name", "quick"});
  ASSERT_EQ(r.code, kExitPass) << r.err;
  const auto check = [&](const std::string &name) {
    const std::string library = compiled("mine", name);
    return assay_program({"check", "--plugin", library, "--cases", "4", "--property",
                          "within_budget", "--findings", folder_.string(), "--out", path("found")});
  };
  r = check("right.so");
  EXPECT_EQ(r.code, kExitPass) << r.out << r.err;
  EXPECT_NE(r.out.find("quick"), std::string::npos) << r.out;
  edit("mine/kernel.cpp", t.line, t.wrong);
  r = check("wrong.so");
  EXPECT_EQ(r.code, kExitFinding) << r.out << r.err;
  EXPECT_NE(r.out.find("FINDING quick"), std::string::npos) << r.out;
}

INSTANTIATE_TEST_SUITE_P(, NewPluginOf,
                         testing::Values(Template{"--paged", "p.sm_scale * kLog2E", "kLog2E"},
                                         Template{"--cascade", "state.sum * alpha + weight",
                                                  "state.sum + weight"},
                                         Template{"--merge", "sum += weight;", "sum += 1.0f;"}),
                         [](const auto &test) { return std::string(test.param.flag + 2); });

struct LargeMistake {
  const char *name, *line, *wrong;
};
class LargeCalls : public Cli, public testing::WithParamInterface<LargeMistake> {};

// A mistake that no small call shows, in a kernel that refuses much, is found by the draws that a
// user's run has.
TEST_P(LargeCalls, AreAskedOfAPlugin) {
  const LargeMistake &m = GetParam();
  ASSERT_EQ(assay_program({"new", "plugin", "mine", "--paged"}).code, kExitPass);
  edit("mine/kernel.cpp", m.line, m.wrong);
  const std::string library = compiled("mine", "wrong.so");
  const Ran r =
      assay_program({"check", "--plugin", library, "--property", "within_budget", "--findings",
                     folder_.string(), "--fail-fast", "--out", path("found")});
  EXPECT_EQ(r.code, kExitFinding) << r.out << r.err;
}

INSTANTIATE_TEST_SUITE_P(
    , LargeCalls,
    testing::Values(LargeMistake{"requests_past_eight", "request < p.batch;",
                                 "request < p.batch && request < 8;"},
                    LargeMistake{"heads_past_32_of_a_group", "attend(p, request, token, head);",
                                 "if (head % (p.num_qo_heads / p.num_kv_heads) < 32) attend(p, "
                                 "request, token, head);"},
                    LargeMistake{"slots_past_128", "token % kv.page_size * kv.k_stride_token",
                                 "token % kv.page_size % 128 * kv.k_stride_token"}),
    [](const auto &test) { return std::string(test.param.name); });

TEST_F(Cli, NewPluginWritesWhatItNames) {
  const struct {
    std::vector<std::string> flags;
    const char *source;
  } asked[] = {{{}, "kernel.cpp"}, {{"--cuda"}, "kernel.cu"}, {{"--python"}, "kernel.py"}};
  for (const char *family : {"--paged", "--cascade", "--merge"})
    for (const auto &a : asked) {
      fs::remove_all("mine");
      std::vector<std::string> args = {"--json", path("out.json"), "new", "plugin", "mine", family};
      args.insert(args.end(), a.flags.begin(), a.flags.end());
      const Ran r = assay_program(args);
      ASSERT_EQ(r.code, kExitPass) << r.err;
      size_t files = 0;
      for (const auto &entry : fs::recursive_directory_iterator("mine"))
        files += entry.is_regular_file();
      const auto j = json("out.json");
      EXPECT_EQ(j["files"].size(), files);
      EXPECT_EQ(j["kernels"][0],
                std::string(family) == "--merge" ? "my_kernel_state" : "my_kernel");
      EXPECT_TRUE(fs::exists(fs::path("mine") / a.source)) << a.source;
      for (const auto &file : j["files"])
        EXPECT_NE(r.out.find(file.get<std::string>() + "\n"), std::string::npos) << r.out;
    }
}

// The program holds the templates of this tree, not of an earlier build.
TEST(PluginProject, HoldsTheFilesOfTheTree) {
  const fs::path templates = fs::path(ASSAY_SOURCES) / "properties/plugins/templates";
  const auto expect_source = [&](Kind kind, Language language, const char *name, const char *from) {
    for (const auto &file : plugins::project_files(kind, language, "my_kernel"))
      if (file.path == name) {
        EXPECT_EQ(file.text, read_text(templates / from)) << from;
        return;
      }
    ADD_FAILURE() << "no " << name << " for " << from;
  };
  expect_source(Kind::kPaged, Language::kCpp, "kernel.cpp", "cpp/paged.cpp");
  for (const char *header : {"assay.h", "plugin.h"})
    expect_source(Kind::kMerge, Language::kCuda, (std::string("include/assay/") + header).c_str(),
                  (std::string("../../../kernels/abi/") + header).c_str());
  expect_source(Kind::kPaged, Language::kSimt, "kernel.cuh", "simt/kernel.cuh");
  expect_source(Kind::kCascade, Language::kCpp, "kernel.cpp", "cpp/cascade.cpp");
  expect_source(Kind::kMerge, Language::kCpp, "kernel.cpp", "cpp/merge.cpp");
  expect_source(Kind::kPaged, Language::kCuda, "kernel.cu", "cuda/paged.cu");
  expect_source(Kind::kCascade, Language::kCuda, "kernel.cu", "cuda/cascade.cu");
  expect_source(Kind::kMerge, Language::kCuda, "kernel.cu", "cuda/merge.cu");
  expect_source(Kind::kPaged, Language::kPython, "kernel.py", "python/paged.py");
  expect_source(Kind::kCascade, Language::kPython, "kernel.py", "python/cascade.py");
  expect_source(Kind::kMerge, Language::kPython, "kernel.py", "python/merge.py");
}

/// The declaration of a project that starts from a named arithmetic.
std::string declaration_like(const std::string &name, Language language, const char *source) {
  for (const auto &file : plugins::project_files(Kind::kPaged, language, "my_kernel", name))
    if (file.path == source) {
      const size_t begin = file.text.find("constexpr assay_arithmetic kArithmetic");
      return file.text.substr(begin, file.text.find("};\n", begin) + 3 - begin);
    }
  return "";
}

// Initialisers in another order than the struct's fields do not compile.
TEST_F(Cli, EveryNamedArithmeticIsADeclaration) {
  std::string all = "#include <assay/plugin.h>\n";
  for (const std::string &name : plugins::arithmetic_names()) {
    const std::string declaration = declaration_like(name, Language::kCpp, "kernel.cpp");
    EXPECT_EQ(declaration, declaration_like(name, Language::kCuda, "kernel.cu"));
    EXPECT_NE(declaration.find("As " + name + " ("), std::string::npos) << declaration;
    all += "namespace like_" + name + " {\n" + declaration +
           "assay_arithmetic get() { return kArithmetic; }\n}\n";
  }
  fs::create_directories("all");
  std::ofstream("all/kernel.cpp") << all;
  compiled("all", "all.so");
  EXPECT_GE(plugins::arithmetic_names().size(), 14u);
}

// The values are those of the data file, which Declaration.like reads, too.
TEST_F(Cli, NewPluginStartsFromANamedArithmetic) {
  ASSERT_EQ(assay_program({"new", "plugin", "mine", "--paged", "--like", "fa2"}).code, kExitPass);
  const std::string library = compiled("mine", "like.so");
  ASSERT_EQ(assay_program({"--json", path("k.json"), "list", "kernels", "--plugin", library}).code,
            kExitPass);
  const auto declared = json("k.json")["kernels"][0]["declaration"];
  std::ifstream in(fs::path(ASSAY_SOURCES) / "properties/python/assay/arithmetics/fa2.json");
  const auto data = nlohmann::json::parse(in);
  for (const auto &[field, entry] : data["fields"].items())
    EXPECT_EQ(declared[field], entry["value"]) << field;
  EXPECT_EQ(declared["q_abs_error"], 0.0); // the file does not have it
  const Ran python = assay_program(
      {"new", "plugin", "other", "--merge", "--python", "--like", "flashinfer_merge"});
  ASSERT_EQ(python.code, kExitPass) << python.err;
  EXPECT_NE(read_text("other/kernel.py").find("assay.Declaration.like(\"flashinfer_merge\")"),
            std::string::npos);
  expect_error(assay_program({"new", "plugin", "third", "--paged", "--like", "fa9"}), kExitUsage,
               "'fa9' is none of assay, fa2, ");
  EXPECT_FALSE(fs::exists("third"));
}

TEST(PluginProject, NoPlaceholderIsLeft) {
  for (Kind kind : {Kind::kPaged, Kind::kCascade, Kind::kMerge})
    for (Language language : {Language::kCpp, Language::kCuda, Language::kPython})
      for (const auto &file : plugins::project_files(kind, language, "Quick-2.x")) {
        EXPECT_FALSE(file.text.empty()) << file.path;
        EXPECT_EQ(file.text.find("my_kernel"), std::string::npos) << file.path;
        for (const char *word : {"@KERNEL", "@WORKER", "@TARGET", "@EXTENSION"})
          EXPECT_EQ(file.text.find(word), std::string::npos) << file.path << " " << word;
      }
}

TEST_F(Cli, NewPluginRefusesByName) {
  const auto refused = [&](std::vector<std::string> args, const std::string &part) {
    args.insert(args.begin(), {"new", "plugin"});
    expect_error(assay_program(args), kExitUsage, part);
  };
  refused({"mine"}, "expected one of --paged, --cascade and --merge");
  refused({"mine", "--paged", "--merge"}, "expected one of --paged, --cascade and --merge");
  refused({"mine", "--paged", "--cuda", "--python"}, "one of --simt, --cuda and --python at most");
  refused({"--paged"}, "new: dir is missing: its folder");
  refused({"", "--paged"}, "dir: is empty");
  for (const char *name : {"a b", "1st", "x/y", "x#", "\"", "_x"})
    refused({"mine", "--paged", "--name", name}, "--name '" + std::string(name) + "': is not a");
  refused({"mine", "--paged", "--name", std::string(81, 'a')}, "80 characters at most");
  expect_error(assay_program({"new", "kernel", "mine", "--paged"}), kExitUsage, "kernel");
  EXPECT_FALSE(fs::exists("mine"));
}

TEST_F(Cli, NewPluginOverwritesNothing) {
  file("taken", "text");
  expect_error(assay_program({"new", "plugin", "taken", "--paged"}), kExitUsage,
               "DIR taken: exists and is no folder");
  expect_error(assay_program({"new", "plugin", "taken/below", "--paged"}), kExitUsage,
               "DIR taken/below: ");
  fs::create_directories("full");
  file("full/notes", "text");
  expect_error(assay_program({"new", "plugin", "full", "--paged"}), kExitUsage,
               "DIR full: is not empty");
  EXPECT_EQ(read_text("full/notes"), "text");
  EXPECT_EQ(std::distance(fs::directory_iterator("full"), fs::directory_iterator()), 1);
  fs::create_directories("empty");
  EXPECT_EQ(assay_program({"new", "plugin", "empty", "--paged"}).code, kExitPass);
}

} // namespace
} // namespace assay
