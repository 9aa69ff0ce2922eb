// Rules of the server's small parts, each violated once, and limits at their last value.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/ops/value.h"
#include "server/executor/model/result.h"
#include "server/repository/folder/layout.h"
#include "server/scheduler/rate_limiter.h"
#include "server/transport/grpc/inherited_sockets.h"
#include "tests/server/error_of.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::server_bounds_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(ServerBounds, ResourcesOfTheRateLimiter) {
  RateLimiter limiter({{{"R", false}, 3}});
  const auto refusal = [&](std::vector<RateLimiter::Resource> needs) {
    return std::string(error_of([&] { limiter.add_client("m", std::move(needs), 1); }).what());
  };
  EXPECT_NO_THROW(limiter.add_client("m", {{"R", false, 3}}, 1));
  EXPECT_EQ(refusal({{"R", false, 4}}), "rate_limiter of model 'm': it needs 4 of resource 'R', of which there are 3");
  EXPECT_EQ(refusal({{"T", false, 1}, {"T", false, 2}}), "rate_limiter of model 'm' names resource 'T' twice");
  EXPECT_EQ(refusal({{"T", true, 1}, {"T", false, 2}}), "rate_limiter of model 'm' names resource 'T' twice");
  // A resource that one client declares as global is global for all, as long as any client needs it.
  auto local = limiter.add_client("local", {{"S", false, 1}}, 1);
  EXPECT_THAT(refusal({{"S", true, 1}}), HasSubstr("'S' is global for one and not global for another"));
  local.reset();
  const auto global = limiter.add_client("global", {{"S", true, 1}}, 1);
  EXPECT_THAT(refusal({{"S", false, 1}}), HasSubstr("'S' is global for one and not global for another"));
}

ops::Value nested(int depth) {
  ops::Value value = Tensor::scalar(1.0f);
  for (int i = 0; i < depth; ++i) value = ops::make_tuple({std::move(value)});
  return value;
}

TEST(ServerBounds, ResultsNest16Deep) {
  EXPECT_THAT(flatten_result(nested(16)), SizeIs(1));
  EXPECT_EQ(std::string(error_of([] { flatten_result(nested(17)); }).what()), "the result nests deeper than 16 levels");
  // Lists and dicts count as levels, like tuples.
  const auto list = [](ops::Value value) { return ops::Value(ops::make_list(ops::any_type(), {std::move(value)})); };
  EXPECT_THAT(flatten_result(list(nested(15))), SizeIs(1));
  EXPECT_THAT(error_of([&] { flatten_result(list(nested(16))); }).what(), HasSubstr("nests deeper"));
}

TEST(ServerBounds, ResultsThatHaveNoPlace) {
  const auto rows = [](std::vector<std::vector<std::string>> texts) {
    std::vector<ops::Value> out;
    for (const auto& row : texts) {
      std::vector<ops::Value> items(row.begin(), row.end());
      out.emplace_back(ops::make_list(ops::string_type(), std::move(items)));
    }
    return ops::Value(ops::make_list(ops::list_type(ops::string_type()), std::move(out)));
  };
  EXPECT_EQ(flatten_result(rows({{"a", "b"}, {"c", "d"}})).at(0).shape, (Dims{2, 2}));
  EXPECT_EQ(flatten_result(rows({})).at(0).shape, (Dims{0, 0}));
  const Error uneven = error_of([&] { flatten_result(rows({{"a", "b"}, {"c"}})); });
  EXPECT_EQ(uneven.code(), ErrorCode::kFailedPrecondition);
  EXPECT_THAT(uneven.what(), HasSubstr("lists of strings of different lengths, 2 and 1"));
}

// ---- sockets of systemd

class Inherited : public ::testing::Test {
 protected:
  ~Inherited() override {
    for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) unsetenv(name);
    for (const int file : files_) close(file);
    for (size_t i = 0; i < saved_.size(); ++i) {
      const int at = 3 + static_cast<int>(i);
      close(at);
      if (saved_[i] >= 0) {
        dup2(saved_[i], at);
        close(saved_[i]);
      }
    }
  }
  // Makes this file descriptor 3 + i, as systemd does.
  void put(const std::vector<int>& files) {
    for (size_t i = 0; i < files.size(); ++i) saved_.push_back(fcntl(3 + static_cast<int>(i), F_DUPFD_CLOEXEC, 200));
    for (size_t i = 0; i < files.size(); ++i) dup2(files[i], 3 + static_cast<int>(i));
  }
  int made(int domain, int type, bool listens) {
    const int raw = socket(domain, type | SOCK_CLOEXEC, 0);
    const int file = fcntl(raw, F_DUPFD_CLOEXEC, 100);
    close(raw);
    files_.push_back(file);
    if (domain == AF_INET) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      bind(file, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    } else {
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
      bind(file, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    }
    if (listens) listen(file, 1);
    return file;
  }
  static void say(const std::string& count, const std::string& names = "") {
    setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
    setenv("LISTEN_FDS", count.c_str(), 1);
    if (!names.empty()) setenv("LISTEN_FDNAMES", names.c_str(), 1);
  }
  static std::string refusal() {
    return error_of([] { take_inherited_sockets(); }).what();
  }

  const fixtures::TemporaryFolder folder_{"inherited"};
  const std::string path_ = (folder_.path() / "s").string();
  std::vector<int> files_, saved_;
};

TEST_F(Inherited, OnlyThoseOfThisProcess) {
  EXPECT_TRUE(take_inherited_sockets().empty());
  say("1");
  setenv("LISTEN_PID", std::to_string(getpid() + 1).c_str(), 1);
  EXPECT_TRUE(take_inherited_sockets().empty());
  say("0");
  EXPECT_TRUE(take_inherited_sockets().empty());
  unsetenv("LISTEN_FDS");
  EXPECT_TRUE(take_inherited_sockets().empty());
}

TEST_F(Inherited, Numbers) {
  for (const char* text : {"", "x", "1x", "-1", " 1", "99999999999"}) {
    say(text);
    EXPECT_EQ(refusal(), concat("$LISTEN_FDS is not a number: ", text));
  }
  say("65");
  EXPECT_EQ(refusal(), "$LISTEN_FDS: at most 64 sockets, got 65");
  setenv("LISTEN_PID", "me", 1);
  EXPECT_EQ(refusal(), "$LISTEN_PID is not a number: me");
}

TEST_F(Inherited, Sockets) {
  put({made(AF_INET, SOCK_STREAM, true), made(AF_UNIX, SOCK_STREAM, true), made(AF_INET, SOCK_STREAM, true)});
  say("3", "grpc:other");
  const InheritedSockets all = take_inherited_sockets();
  EXPECT_THAT(all.tcp, ::testing::ElementsAre(3, 5));
  EXPECT_EQ(all.tcp_host, "127.0.0.1");
  EXPECT_THAT(all.unix_domain, ::testing::ElementsAre(4));
  EXPECT_EQ(all.unix_path, path_);
  for (const int file : {3, 4, 5}) {
    EXPECT_NE(fcntl(file, F_GETFD) & FD_CLOEXEC, 0) << file;
    EXPECT_NE(fcntl(file, F_GETFL) & O_NONBLOCK, 0) << file;
  }
  for (const char* names : {"http", "a:http", "a:b:metrics"}) {
    say("3", names);
    EXPECT_THAT(refusal(), HasSubstr("only gRPC's sockets can be handed over")) << names;
  }
  say("1", "a:http");  // a name beyond the sockets
  EXPECT_THAT(take_inherited_sockets().tcp, SizeIs(1));
}

TEST_F(Inherited, WhatDoesNotListen) {
  put({made(AF_INET, SOCK_STREAM, false)});
  say("1");
  EXPECT_EQ(refusal(), "$LISTEN_FDS: file 3 is not a stream socket that listens");
}

TEST_F(Inherited, WhatIsNoStream) {
  put({made(AF_UNIX, SOCK_SEQPACKET, true)});
  say("1");
  EXPECT_EQ(refusal(), "$LISTEN_FDS: file 3 is not a stream socket that listens");
}

// ---- folders of models

class Layouts : public ::testing::Test {
 protected:
  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::string refusal() const {
    return error_of([&] { scan_model(root_.string(), "m", nullptr, ""); }).what();
  }
  std::string version_error() const {
    const ModelLayout model = scan_model(root_.string(), "m", nullptr, "");
    return model.versions.size() == 1 ? model.versions[0].error : "not one version";
  }

  const fixtures::TemporaryFolder temporary_{"layouts"};
  const fs::path root_ = temporary_.path() / "models";
};

TEST_F(Layouts, Configurations) {
  write("m/1/model.pt", "x");
  EXPECT_EQ(version_error(), "");
  const std::string start = "name: \"m\"\n";
  write("m/config.pbtxt", start + std::string((1 << 20) - start.size(), '#'));
  EXPECT_EQ(version_error(), "");
  write("m/config.pbtxt", start + std::string((1 << 20) - start.size() + 1, '#'));
  EXPECT_THAT(refusal(), HasSubstr("config.pbtxt: larger than 1048576 bytes"));
  fs::remove(root_ / "m/config.pbtxt");
  fs::create_directory(root_ / "m/config.pbtxt");
  EXPECT_THAT(refusal(), HasSubstr("config.pbtxt: not a file"));
  fs::remove(root_ / "m/config.pbtxt");
  write("m/config.pbtxt", "name: \"n\"\n");
  EXPECT_THAT(refusal(), HasSubstr("the model is named 'n', but its folder 'm'"));
  for (const char* name : {".", "..", "a/b"}) {
    write("m/config.pbtxt", concat("default_model_filename: \"", name, "\"\n"));
    EXPECT_THAT(refusal(), HasSubstr("is not a plain file name")) << name;
  }
  EXPECT_THAT(error_of([&] { scan_model(root_.string(), "a/b", nullptr, ""); }).what(), HasSubstr("not a plain name"));
  EXPECT_THAT(error_of([&] { scan_model((root_ / "none").string(), "m", nullptr, ""); }).what(),
              HasSubstr("model repository "));
}

TEST_F(Layouts, Files) {
  fs::create_directories(root_ / "m/1/model.pt/below");
  EXPECT_THAT(version_error(), HasSubstr("model.pt: not a file"));
  fs::remove_all(root_ / "m/1");
  write("m/1/other.txt", "x");
  EXPECT_THAT(version_error(), HasSubstr("model.pt is not there; "));
  write("m/1/model.pt", "x");
  write("m/1/model.onnx", "x");
  EXPECT_THAT(version_error(), HasSubstr("say default_model_filename in config.pbtxt"));
  fs::remove(root_ / "m/1/model.onnx");
  EXPECT_EQ(version_error(), "");
}

TEST_F(Layouts, FilesBesideTheConfiguration) {
  write("m/1/model.pt", "x");
  write("m/labels", "a");
  write("m/warmup/data", "a");
  const std::string output = "output { name: \"y\" data_type: TYPE_FP32 dims: [ 1 ] label_filename: \"";
  write("m/config.pbtxt", output + "labels\" }\n");
  EXPECT_EQ(version_error(), "");
  write("m/config.pbtxt", output + "1\" }\n");
  EXPECT_THAT(refusal(), HasSubstr("m/1: not a file"));
  write("m/config.pbtxt", output + "../labels\" }\n");
  EXPECT_THAT(refusal(), HasSubstr("label_filename '../labels' is not a plain file name"));
}

// A version is withdrawn, and restored, in one step; obstacles are reported.
TEST_F(Layouts, VersionsThatAreWithdrawn) {
  write("m/1/model.pt", "x");
  write("m/2/model.pt", "x");
  ModelLayout model = scan_model(root_.string(), "m", nullptr, "");
  const fs::path withdrawn = withdraw_version(model, 2);
  EXPECT_FALSE(fs::exists(root_ / "m/2"));
  EXPECT_EQ(scan_model(root_.string(), "m", nullptr, "").largest_number, 2);  // its number is not reused
  EXPECT_THAT(error_of([&] { withdraw_version(model, 2); }).what(), HasSubstr(": cannot be made: "));
  restore_version(model, 2, withdrawn);
  EXPECT_TRUE(fs::exists(root_ / "m/2/model.pt"));
  EXPECT_THAT(error_of([&] { restore_version(model, 2, withdrawn); }).what(), HasSubstr(": cannot be moved back: "));
  // The next number is above all others, including versions that appear meanwhile.
  model = scan_model(root_.string(), "m", nullptr, "");
  write("m/3/model.pt", "x");
  fs::create_directory(root_ / "m/.new");
  EXPECT_EQ(take_next_version(model, root_ / "m/.new"), 4);
  EXPECT_THAT(error_of([&] { take_next_version(model, root_ / "m/.none"); }).what(), HasSubstr(": cannot be made: "));
}

}  // namespace
}  // namespace tensord::server::server_bounds_test
