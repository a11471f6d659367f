// SPDX-License-Identifier: Apache-2.0
// Positive controls of fuzz_json: each broken reader must be caught by the seed corpus.
#include "fuzz/json_checks.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fuzz/tests/seeds.h"
#include "properties/cli/session/streams.h"

namespace assay::fuzz {
namespace {

std::string run_readers(const ReadersUnderTest &readers) {
  return first_violation("fuzz_json", [&](Input input) { return check_json_with(readers, input); });
}

TEST(JsonControl, the_readers_pass) { EXPECT_EQ(run_readers({}), ""); }

TEST(JsonControl, cells_lose_a_field) {
  ReadersUnderTest readers;
  readers.cells = [](const std::string &text, const std::string &where) {
    static int calls = 0;
    bench::CellSet cells = bench::parse_cells(text, where);
    if (++calls % 2 == 0) cells = {};
    return cells;
  };
  EXPECT_NE(run_readers(readers), "");
}

TEST(JsonControl, a_declaration_ends_in_an_internal_error) {
  ReadersUnderTest readers;
  readers.declaration = [](const assay_plugin &plugin, const std::string &text,
                           const std::string &file, HeldPlugin &out) {
    const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
    if (document.is_object() && document.contains("kernels"))
      for (const auto &entry : document["kernels"])
        entry.at("name").get<std::string>();
    hold_to_text(plugin, text, file, out);
  };
  EXPECT_NE(run_readers(readers).find("an internal error"), std::string::npos);
}

TEST(JsonControl, a_hello_is_refused_as_if_the_program_had_failed) {
  ReadersUnderTest readers;
  readers.hello = [](const std::string &, const std::string &) -> std::unique_ptr<WorkerTable> {
    throw CliError(kExitHarness, "no");
  };
  EXPECT_NE(run_readers(readers).find("exit code 4"), std::string::npos);
}

TEST(JsonControl, a_refusal_repeats_control_characters) {
  ReadersUnderTest readers;
  readers.cells = [](const std::string &text, const std::string &) -> bench::CellSet {
    throw std::invalid_argument(text);
  };
  EXPECT_NE(run_readers(readers).find("control characters"), std::string::npos);
}

TEST(JsonControl, a_log_names_a_finding_without_a_message) {
  ReadersUnderTest readers;
  readers.log = [](const std::string &text) {
    campaign::FuzzLog log = campaign::read_fuzz_log(text);
    log.message.clear();
    return log;
  };
  EXPECT_NE(run_readers(readers), "");
}

TEST(JsonControl, a_refused_reply_leaves_its_bytes) {
  ReadersUnderTest readers;
  readers.reply = [](std::span<const std::byte>, RunResult &, Tensors &t) {
    for (Buffer &buffer : t.buffers)
      if (!buffer.bytes.empty()) buffer.bytes[0] ^= std::byte{1};
    return false;
  };
  EXPECT_NE(run_readers(readers), "");
}

} // namespace
} // namespace assay::fuzz
