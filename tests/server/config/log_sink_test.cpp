#include "server/config/log_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/log.h"

namespace tensord::server::log_sink_test {
namespace {

// The log line with this value.
std::string logged(const std::string& format, const std::string& value) {
  LogSettings settings;
  settings.file = ::testing::TempDir() + "log_sink_test_" + std::to_string(getpid());
  const std::string path = settings.file;
  install_log_sink(settings);
  change_log_settings([&](LogSettings& settings) { settings.format = format; });
  const auto before = std::filesystem::file_size(path);
  log(LogLevel::kWarning, "text", {{"model", value}});
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(before));
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Names come from clients: they must neither start lines of their own nor break the encoding.
TEST(LogSink, TextsOfClientsStayInTheirLine) {
  EXPECT_NE(logged("text", "a\nerror model=b").find(R"(model="a\nerror model=b")"), std::string::npos);
  EXPECT_NE(logged("text", "a\xec\x28z").find("model=\"a\xef\xbf\xbd(z\""), std::string::npos);
  EXPECT_NE(logged("text", "plain").find("model=plain\n"), std::string::npos);
  EXPECT_NE(logged("text", "\xc3\xa9").find("model=\"\xc3\xa9\""), std::string::npos);
}

// Characters that reverse the text direction, that Unicode treats as line ends, or that move a terminal's cursor.
TEST(LogSink, WhatATerminalDoesNotShowIsEscaped) {
  for (const char* form : {"text", "default", "ISO8601", "json"}) {
    const std::string line = logged(form, "a\u202eb\u2028c\u2066d\u200fe\x7f\xc2\x9b[2J\ufeff");
    EXPECT_NE(line.find(R"("a\u202eb\u2028c\u2066d\u200fe\u007f\u009b[2J\ufeff")"), std::string::npos) << line;
  }
  EXPECT_EQ(nlohmann::json::parse(logged("json", "a\u202eb"))["model"], "a\u202eb");
}

// Level, date, time, process and source location, as Triton's own tests parse them.
TEST(LogSink, LinesOfTritonsForms) {
  using ::testing::MatchesRegex;
  EXPECT_THAT(
      logged("default", "m"),
      MatchesRegex(
          "W[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6} [0-9]+ log_sink_test\\.cpp:[0-9]+\\] text model=m\n"));
  EXPECT_THAT(logged("ISO8601", "m"), MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z W [0-9]+ "
                                                   "log_sink_test\\.cpp:[0-9]+\\] text model=m\n"));
}

// A line that cannot be written is lost, and nothing else; the failure is reported on another channel.
TEST(LogSink, AFullDiskEndsNothing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto log_to_full_disk = [] {
    LogSettings settings;
    settings.file = "/dev/full";
    install_log_sink(settings);
    for (int i = 0; i < 3; ++i) log(LogLevel::kError, "text", {{"number", i}});
    exit(0);
  };
  EXPECT_EXIT(log_to_full_disk(), ::testing::ExitedWithCode(0), "No space left on device");
}

TEST(LogSink, JsonHasNumbersAsNumbersAndTimesOfRfc3339) {
  LogSettings settings;
  settings.format = "json";
  settings.file = ::testing::TempDir() + "log_sink_numbers_" + std::to_string(getpid());
  install_log_sink(settings);
  log(LogLevel::kInfo, "fields",
      {{"count", size_t{3}}, {"share", 0.5}, {"is_on", true}, {"none", std::nan("")}, {"id", "7"}, {"letter", 'x'}});
  std::ifstream file(settings.file);
  std::string text;
  std::getline(file, text);
  std::filesystem::remove(settings.file);
  const auto line = nlohmann::json::parse(text);
  EXPECT_EQ(line["count"], 3);
  EXPECT_EQ(line["share"], 0.5);
  EXPECT_EQ(line["is_on"], true);
  EXPECT_EQ(line["none"], "nan");
  EXPECT_EQ(line["id"], "7");
  EXPECT_EQ(line["letter"], "x");
  EXPECT_THAT(line["time"].get<std::string>(), ::testing::MatchesRegex("....-..-..T..:..:.........Z"));
}

TEST(LogSink, JsonIsJson) {
  const auto line = nlohmann::json::parse(logged("json", "a\xec\n\"\\"));
  EXPECT_EQ(line["model"], "a\xef\xbf\xbd\n\"\\");
  EXPECT_EQ(line["message"], "text");
}

}  // namespace
}  // namespace tensord::server::log_sink_test
