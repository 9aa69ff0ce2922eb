// The repository's small rules: names, labels, files of a load, hints; each limit at its last value and one beyond.
#include <gmock/gmock.h>
#include <sys/file.h>

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <set>
#include <string>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "server/repository/demand_loads.h"
#include "server/repository/folder/layout.h"
#include "server/repository/folder/layout_hints.h"
#include "server/repository/folder/model_overrides.h"
#include "server/repository/folder/model_stamp.h"
#include "server/repository/folder/transient_error.h"
#include "server/repository/load_planner.h"
#include "server/repository/version_labels.h"
#include "tests/server/repository/repository_fixture.h"

namespace tensord::server::repository_bounds_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

template <class Call>
std::string refusal_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return concat(to_string(error.code()), " ", error.what());
  }
  return "none";
}

TEST(RepositoryBounds, PlainNames) {
  for (const std::string& name : {std::string("a"), std::string(255, 'n'), std::string("a.b"), std::string("\x7e"),
                                  std::string(" "), std::string("\xc3\xa4")}) {
    EXPECT_TRUE(is_plain_name(name)) << name;
  }
  for (const std::string& name :
       {std::string(), std::string(256, 'n'), std::string(".a"), std::string("a/b"), std::string("a\\b"),
        std::string("a\x1f"), std::string("a\x7f"), std::string("a\0", 2), std::string("\x80"), std::string("a\xff")}) {
    EXPECT_FALSE(is_plain_name(name)) << name;
  }
  EXPECT_EQ(version_number("9223372036854775807"), INT64_MAX);
  for (const char* text : {"", "0", "01", "-1", "1a", "a1", " 1", "9223372036854775808"}) {
    EXPECT_EQ(version_number(text), 0) << text;
  }
  EXPECT_EQ(version_number("1"), 1);
}

TEST(RepositoryBounds, ModesOfControl) {
  EXPECT_EQ(parse_control_mode("none"), ControlMode::kNone);
  EXPECT_EQ(parse_control_mode("poll"), ControlMode::kPoll);
  EXPECT_EQ(parse_control_mode("explicit"), ControlMode::kExplicit);
  EXPECT_THAT(refusal_of([] { parse_control_mode("all"); }), HasSubstr("none, poll or explicit, got 'all'"));
}

// Transient errors, which are worth a retry.
TEST(RepositoryBounds, FailuresThatMayPass) {
  const auto of_files = [](std::errc code) { return fs::filesystem_error("x", std::make_error_code(code)); };
  EXPECT_TRUE(is_retryable(DiskError(ErrorCode::kResourceExhausted, "disk full")));
  EXPECT_TRUE(is_retryable(Error(ErrorCode::kUnavailable, "x")));
  EXPECT_FALSE(is_retryable(Error(ErrorCode::kResourceExhausted, "x")));
  EXPECT_FALSE(is_retryable(std::runtime_error("x")));
  for (const std::errc code : {std::errc::too_many_files_open, std::errc::too_many_files_open_in_system,
                               std::errc::not_enough_memory, std::errc::io_error}) {
    EXPECT_TRUE(is_retryable(of_files(code))) << static_cast<int>(code);
  }
  EXPECT_FALSE(is_retryable(of_files(std::errc::no_such_file_or_directory)));
}

TEST(RepositoryBounds, NamesThatAreLoaded) {
  const auto refusal = [](const std::string& name) { return refusal_of([&] { check_model_name(name); }); };
  EXPECT_EQ(refusal("m"), "none");
  EXPECT_EQ(refusal(" m "), "none");
  EXPECT_THAT(refusal(""), HasSubstr("Model name cannot be empty"));
  EXPECT_THAT(refusal(" \t\n\r\f\v"), HasSubstr("Model name cannot be empty"));
  EXPECT_THAT(refusal(" .. "), HasSubstr("must not contain path traversal characters"));
  EXPECT_THAT(refusal("a/b"), HasSubstr("must not contain path traversal characters"));
  EXPECT_THAT(refusal(".hidden"), HasSubstr("NOT_FOUND failed to load '.hidden'"));
}

TEST(RepositoryBounds, Labels) {
  const auto refusal = [](const std::string& text) { return refusal_of([&] { parse_labels(text); }); };
  const auto is_label = [&](const std::string& label) { return refusal(label + "=1") == "none"; };
  // The ends of each range of letters, and their neighbors.
  for (const char first : std::string("azAZ")) EXPECT_TRUE(is_label({first})) << first;
  for (const char first : std::string("`{@[09_-.")) EXPECT_FALSE(is_label({first})) << first;
  for (const char other : std::string("azAZ09_-.")) EXPECT_TRUE(is_label({'a', other})) << other;
  for (const char other : std::string("`{@[/: +")) EXPECT_FALSE(is_label({'a', other})) << other;
  EXPECT_TRUE(is_label(std::string(64, 'a')));
  EXPECT_FALSE(is_label(std::string(65, 'a')));
  EXPECT_FALSE(is_label(""));
  const auto many = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += concat(i > 0 ? "," : "", "l", i, "=1");
    return text;
  };
  EXPECT_THAT(parse_labels(many(256)), SizeIs(256));
  EXPECT_THAT(refusal(many(257)), HasSubstr("more than 256 version labels"));
  EXPECT_EQ(parse_labels("a=2,b=").at("b"), 0);
  EXPECT_THAT(refusal("a=2,a=3"), HasSubstr("version label 'a' is given twice"));
  EXPECT_THAT(refusal("a"), HasSubstr("are given as stable=2,canary=3, got 'a'"));
  EXPECT_THAT(refusal(""), HasSubstr("got nothing"));
  for (const char* number : {"0", "-1", "x", "1x"}) {
    EXPECT_THAT(refusal(concat("a=", number)), HasSubstr("is not the number of a version")) << number;
  }
  EXPECT_EQ(configured_labels({{"a", "2"}}).at("a"), 2);
  EXPECT_THAT(refusal_of([] { configured_labels({{"a", ""}}); }), HasSubstr("is not the number of a version"));
  EXPECT_THAT(refusal_of([] { configured_labels({{"1", "1"}}); }), HasSubstr("a label is a letter"));
}

TEST(RepositoryBounds, FilesOfALoad) {
  OverrideStore store(0);
  const auto refusal = [&](const std::string& path) { return refusal_of([&] { store.add("m", {{path, "x"}}); }); };
  const auto path_of = [](int parts) {
    std::string path = "f";
    for (int i = 1; i < parts; ++i) path = "d/" + path;
    return path;
  };
  const std::string part(200, 'p'), long_path = part + "/" + part + "/" + part + "/" + part + "/" + part;  // 1004
  const char* const outside = "the path must stay within the model directory";
  EXPECT_EQ(refusal(path_of(8)), "none");
  EXPECT_THAT(refusal(path_of(9)), HasSubstr(outside));
  EXPECT_EQ(refusal(long_path + "/" + std::string(1024 - 1005, 'f')), "none");
  EXPECT_THAT(refusal(long_path + "/" + std::string(1024 - 1004, 'f')), HasSubstr(outside));
  for (const std::string& path : {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"),
                                  std::string("../a"), std::string("a/../b"), std::string(".")}) {
    EXPECT_THAT(refusal(path), HasSubstr(outside)) << path;
  }
  EXPECT_THAT(refusal(std::string("a\0b", 3)), HasSubstr("INVALID_ARGUMENT Invalid file parameter"));
  EXPECT_THAT(refusal_of([&] { store.add("a/b", {}); }), HasSubstr("model 'a/b': not a plain name"));
  std::map<std::string, std::string> files;
  for (int i = 0; i < 10'000; ++i) files.emplace(concat(i), "");
  EXPECT_EQ(refusal_of([&] { store.add("m", files); }), "none");
  files.emplace("more", "");
  EXPECT_THAT(refusal_of([&] { store.add("m", files); }), HasSubstr("has more than 10000 files"));
  EXPECT_EQ(store.bytes_in_use(), 0u);
}

TEST(RepositoryBounds, FilesOfALoadThatCannotBeWritten) {
  OverrideStore store(0);
  EXPECT_THAT(refusal_of([&] {
                store.add("m", {{"a", "x"}, {"a/b", "a file is not a folder"}});
              }),
              HasSubstr("RESOURCE_EXHAUSTED a file of the model cannot be written to "));
  fs::remove_all(store.add("m", {{"a", "x"}})->root().parent_path());
  EXPECT_THAT(refusal_of([&] { store.add("m", {{"a", "x"}}); }), HasSubstr("UNAVAILABLE "));
  EXPECT_EQ(store.bytes_in_use(), 0u);
}

TEST(RepositoryBounds, BytesOfALoad) {
  OverrideStore store(10);
  const auto load = [&](size_t bytes, uint64_t extra = 0) {
    return store.add("m", {{"1/model.pt", std::string(bytes, 'x')}}, extra);
  };
  {
    const auto folder = load(4, 6);
    EXPECT_EQ(store.bytes_in_use(), 10u);
    EXPECT_EQ(fs::file_size(folder->root() / "m/1/model.pt"), 4u);
    EXPECT_THAT(refusal_of([&] { load(1); }), HasSubstr("brings 1 bytes, more than --model-override-limit leaves"));
    EXPECT_EQ(store.bytes_in_use(), 10u);
    EXPECT_EQ(refusal_of([&] { load(0); }), "none");
  }
  EXPECT_EQ(store.bytes_in_use(), 0u);
  EXPECT_THAT(refusal_of([&] { load(4, 7); }), HasSubstr("RESOURCE_EXHAUSTED"));
  store.close();
  EXPECT_THAT(refusal_of([&] { load(1); }), HasSubstr("the server is shutting down"));
  EXPECT_EQ(store.bytes_in_use(), 0u);
}

TEST(RepositoryBounds, WhereNoFolderCanBeMade) {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before ? before : "";
  setenv("TMPDIR", "/proc", 1);
  OverrideStore store(0);
  EXPECT_EQ(refusal_of([&] {
              store.add("m", {{"f", "x"}});
            }),
            "UNAVAILABLE /proc: no folder can be made in it for files of a load");
  EXPECT_EQ(store.bytes_in_use(), 0u);
  if (before) {
    setenv("TMPDIR", kept.c_str(), 1);
  } else {
    unsetenv("TMPDIR");
  }
}

// Up to the limit, callers wait for a model's load; others, and callers after the shutdown, are refused.
TEST(RepositoryBounds, WhoWaitsForALoad) {
  std::promise<void> opened;
  const std::shared_future<void> gate = opened.get_future().share();
  std::atomic<int> loads{0}, called{0};
  DemandLoads demand(1, 2, [&](const std::string&) {
    ++loads;
    gate.wait();
  });
  const auto add = [&](const std::string& name) { return demand.add(name, [&] { ++called; }); };
  EXPECT_TRUE(add("m"));
  EXPECT_TRUE(add("m"));
  EXPECT_FALSE(add("m"));
  EXPECT_TRUE(add("n"));
  opened.set_value();
  demand.stop();
  EXPECT_EQ(called, 3);
  EXPECT_FALSE(add("m"));
  EXPECT_LE(loads, 2);  // one for each model, unless the shutdown came first
}

TEST(RepositoryBounds, LoadsOnDemandHaveAThreadEach) {
  const auto threads = [] {
    std::set<std::string> ids;
    for (const auto& thread : fs::directory_iterator("/proc/self/task")) ids.insert(thread.path().filename());
    return ids;
  };
  for (const int count : {1, 3}) {
    const auto before = threads();
    DemandLoads demand(count, 2, [](const std::string&) {});
    auto made = threads();
    std::erase_if(made, [&](const std::string& id) { return before.contains(id); });
    EXPECT_THAT(made, SizeIs(count));
  }
}

// Folders in use are kept; folders of processes that have ended are removed.
TEST(RepositoryBounds, FoldersThatWereLeft) {
  const fs::path parent = fs::temp_directory_path();
  const auto make = [&](const std::string& name) {
    const fs::path folder = parent / concat(name, "-", getpid());
    fs::create_directory(folder);
    std::ofstream(folder / ".lock") << "";
    return folder;
  };
  const fs::path left = make("tensord-models-left"), held = make("tensord-models-held"), other = make("other-models");
  const fs::path unlocked = parent / concat("tensord-models-new-", getpid());
  fs::create_directory(unlocked);
  const int lock = open((held / ".lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);
  OverrideStore(0).add("m", {{"f", "x"}});
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(held));
  EXPECT_TRUE(fs::exists(other));
  EXPECT_TRUE(fs::exists(unlocked));  // being created
  close(lock);
  for (const fs::path& folder : {held, other, unlocked}) fs::remove_all(folder);
}

class RepositoryBoundsTest : public fixtures::RepositoryFixture {
 protected:
  void write_below(const std::string& path, const std::string& text = "x") { write(root() / path, text); }
  Repository& start_explicit() {
    Repository::Options options;
    options.mode = ControlMode::kExplicit;
    return start(std::move(options));
  }
  std::string load_error(const LoadRequest& request) {
    return refusal_of([&] { repository_->load(request); });
  }
};

TEST_F(RepositoryBoundsTest, Stamps) {
  for (int i = 0; i < 3; ++i) write_below(concat("m/1/f", i));
  EXPECT_EQ(refusal_of([&] { stamp_model(root() / "m"); }), "none");
  const std::string before = stamp_model(root() / "m").versions.at(1);
  fs::create_symlink("nowhere", root() / "m/1/link");  // dangling: nothing to read
  EXPECT_EQ(stamp_model(root() / "m").versions.at(1), before);
  write_below("m/.hidden/f");
  EXPECT_EQ(stamp_model(root() / "m").shared, "");
}

TEST_F(RepositoryBoundsTest, FoldersThatLookLikeVersions) {
  const auto hints = [&](const std::string& folder) {
    fs::create_directories(root() / "m/1");
    fs::create_directories(root() / "m" / folder);
    const auto found = hints_for_model(root() / "m");
    fs::remove_all(root() / "m");
    return found;
  };
  for (const char* name : {"v2", "V2", "version-2", "ver_2", "02", "2.0", "2_0", "_2", "-2", "v-2.0.1"}) {
    EXPECT_THAT(hints(name), SizeIs(1)) << name;
  }
  for (const char* name : {"v", "version", "2a", "v2a", "a2", "--2", "-", "_", "2-0"}) {
    EXPECT_THAT(hints(name), IsEmpty()) << name;
  }
}

TEST_F(RepositoryBoundsTest, FilesThatLookLikeConfigurations) {
  const auto hints = [&](const std::string& file, const std::string& also = "") {
    fs::create_directories(root() / "m/1");
    write_below("m/" + file);
    if (!also.empty()) write_below("m/" + also);
    const auto found = hints_for_model(root() / "m");
    fs::remove_all(root() / "m");
    return found;
  };
  for (const char* name :
       {"config.pbtx", "config.txt", "Config.pbtxt", "config.prototxt", "other.pbtxt", "config.pb"}) {
    EXPECT_THAT(hints(name), ElementsAre(HasSubstr("is not read: a configuration is called config.pbtxt"))) << name;
    EXPECT_THAT(hints(name, "config.pbtxt"), IsEmpty()) << name;
  }
  for (const char* name : {"config.json", "notes.txt", "other.prototxt", "config"}) {
    EXPECT_THAT(hints(name), IsEmpty()) << name;
  }
}

TEST_F(RepositoryBoundsTest, ListsOfFiveNames) {
  for (int i = 0; i < 5; ++i) write_below(concat("m/1/", i, ".onnx"));
  EXPECT_EQ(hint_for_file(root() / "m/1", "model.pt"),
            "the folder has '0.onnx', '1.onnx', '2.onnx', '3.onnx', '4.onnx': name one of them model.pt");
  write_below("m/1/5.onnx");
  EXPECT_EQ(hint_for_file(root() / "m/1", "model.pt"),
            "the folder has '0.onnx', '1.onnx', '2.onnx', '3.onnx', '4.onnx' …: name one of them model.pt");
  for (int i = 0; i < 7; ++i) write_below(concat(i, ".pt"));
  EXPECT_THAT(hints_for_repository(root()), SizeIs(5));
}

TEST_F(RepositoryBoundsTest, WhatIsInAFolder) {
  fs::create_directories(root() / "m/1/folder");
  EXPECT_THAT(hint_for_file(root() / "m/1", "model.pt"), HasSubstr("the folder has 'folder' and no model"));
  write_below("m/1/readme");
  EXPECT_THAT(hint_for_file(root() / "m/1", "model.pt"), HasSubstr("the folder has 'readme' and no model"));
  fs::create_directories(root() / "e");
  EXPECT_EQ(hint_for_file(root() / "e", "model.pt"), "the folder is empty");
  EXPECT_EQ(hint_for_versions(root() / "e"), "its folder is empty");
  write_below("f/readme");
  EXPECT_THAT(hint_for_versions(root() / "f"), HasSubstr("its folder has 'readme', expected 'f/1/model.pt'"));
  fs::create_directories(root() / "f/other");
  EXPECT_THAT(hint_for_versions(root() / "f"), HasSubstr("its folder has 'other', expected 'f/1/model.pt'"));
  write_below("f/v2/x");
  EXPECT_THAT(hint_for_versions(root() / "f"), HasSubstr("'v2' is not a version"));
}

TEST_F(RepositoryBoundsTest, ConfigurationsOfALoad) {
  add("m", "1");
  add("m", "2");
  start_explicit();
  const auto config = [](size_t size) {
    const std::string text = R"({"name": "m"})";
    return text + std::string(size - text.size(), ' ');
  };
  EXPECT_EQ(load_error({.name = "m", .config = config(1 << 20), .files = {}}), "none");
  EXPECT_THAT(load_error({.name = "m", .config = config((1 << 20) + 1), .files = {}}),
              HasSubstr("parameter 'config' is larger than 1048576 bytes"));
  EXPECT_THAT(load_error({.name = "m", .config = {}, .files = {{"1/model.pt", "identity"}}}),
              HasSubstr("Load parameter 'config' must be specified for model file override"));
  EXPECT_THAT(load_error({.name = "none", .config = {}, .files = {}}), HasSubstr("NOT_FOUND failed to load 'none'"));
  EXPECT_EQ(states("m"), "2 READY");  // as before the refused change
}

TEST_F(RepositoryBoundsTest, AModelInTwoRepositories) {
  write(root("one") / "m/1/model.pt", "identity");
  write(root("two") / "n/1/model.pt", "identity");
  Repository::Options options;
  options.mode = ControlMode::kExplicit;
  options.roots = {root("one").string(), root("two").string()};
  start(std::move(options));
  EXPECT_EQ(load_error({.name = "m", .config = {}, .files = {}}), "none");
  write(root("two") / "m/1/model.pt", "identity");
  EXPECT_THAT(load_error({.name = "m", .config = {}, .files = {}}), HasSubstr("failed to load 'm'"));
  EXPECT_EQ(load_error({.name = "n", .config = {}, .files = {}}), "none");
}

}  // namespace
}  // namespace tensord::server::repository_bounds_test
