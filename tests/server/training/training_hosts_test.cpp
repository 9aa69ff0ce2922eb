// Daemons that join another one: who may, what of their reports is kept, which of them a job gets, and the files that
// they get for it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "server/training/hosts/file_cache.h"
#include "server/training/hosts/host_registry.h"
#include "server/training/hosts/hosted_ranks.h"
#include "server/training/ranks/rank_task.h"
#include "server/training/ranks/remote_hosts.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

// The code and message of what a call throws.
template <class Call>
std::pair<ErrorCode, std::string> error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ErrorCode::kInternal, "none"};
}

struct FakeLink final : HostLink {
  void send(const HostOrder& order) override { orders.push_back(order); }
  void close(const Error& reason) override { closed.push_back(reason.code()); }
  std::vector<HostOrder> orders;
  std::vector<ErrorCode> closed;
};

HostInfo info_of(const std::string& name, const std::string& instance = std::string(16, 'i'), int64_t processes = 1) {
  return {.name = name, .instance = instance, .version = "1", .processes = processes, .address = "127.0.0.1"};
}

class HostRegistryTest : public ::testing::Test {
 protected:
  std::shared_ptr<JoinedHost> join(const HostInfo& info) { return registry_.join(info, std::make_shared<FakeLink>()); }
  std::pair<ErrorCode, std::string> refusal(const HostInfo& info) {
    return error_of([&] { join(info); });
  }
  std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto& listed : registry_.hosts()) out.push_back(listed.info.name);
    return out;
  }
  const ManualClock clock_;
  HostRegistry registry_{"1", clock_};
};

TEST_F(HostRegistryTest, NamesInstancesAndProcessesHaveBounds) {
  for (const std::string& name : {std::string("a"), std::string("AZaz09.-_"), std::string(253, 'x')}) {
    EXPECT_NO_THROW(join(info_of(name))) << name;
  }
  for (const char* name : {"", "a/b", "a:b", "a@b", "a[b", "a`b", "a{b", "a,b", "a b"}) {
    EXPECT_EQ(refusal(info_of(name)).second, "name: a host's name has 1 to 253 letters, digits, '.', '-' and '_'")
        << name;
  }
  EXPECT_EQ(refusal(info_of(std::string(254, 'x'))).first, ErrorCode::kInvalidArgument);
  for (const size_t size : {16, 64}) EXPECT_NO_THROW(join(info_of("i" + std::to_string(size), std::string(size, 'i'))));
  for (const size_t size : {0, 15, 65}) {
    EXPECT_EQ(refusal(info_of("i", std::string(size, 'i'))).second, "instance: must have 16 to 64 characters");
  }
  for (const int64_t processes : {0, -1}) {
    EXPECT_EQ(refusal(info_of("p", std::string(16, 'i'), processes)).second,
              concat("processes: must be above 0, got ", processes));
  }
  HostInfo other = info_of("v");
  other.version = "2";
  EXPECT_EQ(refusal(other).first, ErrorCode::kFailedPrecondition);
}

TEST_F(HostRegistryTest, ANameIsOfOneProcess) {
  const auto link = std::make_shared<FakeLink>();
  const auto first = registry_.join(info_of("a"), link);
  EXPECT_EQ(refusal(info_of("a", std::string(16, 'j'))).first, ErrorCode::kAlreadyExists);
  const auto second = join(info_of("a"));
  EXPECT_EQ(first->left(), "it has joined again");
  EXPECT_EQ(link->closed, std::vector{ErrorCode::kCancelled});
  registry_.leave(first, "late");  // takes nothing from the second
  EXPECT_EQ(first->left(), "it has joined again") << "the first reason stays";
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
  registry_.leave(second, "gone");
  EXPECT_EQ(second->left(), "gone");
  EXPECT_TRUE(names().empty());
}

TEST_F(HostRegistryTest, AtMost1024Join) {
  std::shared_ptr<JoinedHost> last;
  for (int i = 0; i < 1024; ++i) last = join(info_of("h" + std::to_string(i)));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(refusal(info_of("more")).first, ErrorCode::kResourceExhausted);
  EXPECT_EQ(names().size(), 1024u);
  EXPECT_NO_THROW(join(info_of("h0"))) << "one that is there may come again";
  registry_.leave(last, "");
  EXPECT_NO_THROW(join(info_of("more")));
}

TEST_F(HostRegistryTest, NobodyJoinsWhatHasClosed) {
  const auto link = std::make_shared<FakeLink>();
  registry_.join(info_of("a"), link);
  registry_.close();
  EXPECT_EQ(link->closed, std::vector{ErrorCode::kUnavailable});
  EXPECT_EQ(refusal(info_of("b")), std::pair(ErrorCode::kUnavailable, std::string("the server is shutting down")));
}

TEST_F(HostRegistryTest, ReportsAreOfTheStartThatWasBegunLast) {
  const auto host = join(info_of("a"));
  host->receive(PreparedReport{""});
  host->receive(PreparedReport{"one"});
  EXPECT_TRUE(host->take_reports().empty()) << "nothing was begun";
  host->begin("one");
  host->receive(std::monostate());
  host->receive(PreparedReport{"zero"});
  host->receive(PreparedReport{"one"});
  host->receive(LineReport{"one", 3, true, "x"});
  const std::vector<HostReport> reports = host->take_reports();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(std::get<LineReport>(reports[1]).rank, 3);
  EXPECT_TRUE(host->take_reports().empty());
  host->receive(PreparedReport{"one"});
  host->begin("two");
  EXPECT_TRUE(host->take_reports().empty()) << "those of the first start are gone";
}

// 256 bytes for a report, and its line.
TEST_F(HostRegistryTest, ReportsThatNobodyReadsEndAt64Megabytes) {
  const auto host = join(info_of("a"));
  const auto fill = [&](size_t bytes) { host->receive(LineReport{"s", 0, false, std::string(bytes - 256, 'x')}); };
  for (const bool is_taken : {true, false}) {
    host->begin("s");
    fill(64 << 20);
    if (is_taken) host->take_reports();
    if (!is_taken) host->begin("s");
    fill((64 << 20) - 256);
    host->receive(PreparedReport{"s"});
    EXPECT_EQ(error_of([&] { host->receive(PreparedReport{"s"}); }),
              std::pair(ErrorCode::kResourceExhausted, std::string("host a says more than is read")));
  }
}

TEST_F(HostRegistryTest, AJobGetsFreeHostsThatCanTakeItsProcesses) {
  using Names = std::vector<std::string>;
  const auto link = std::make_shared<FakeLink>();
  registry_.join(info_of("b", std::string(16, 'i'), 2), link);
  const auto a = join(info_of("a", std::string(16, 'i'), 1));
  join(info_of("c", std::string(16, 'i'), 3));
  const auto free = [&](const Names& names, int64_t processes) { return registry_.free_hosts(names, processes); };
  const auto take = [&](size_t count, const Names& names, int64_t processes) {
    return registry_.take(count, names, processes);
  };
  EXPECT_EQ(free({}, 1), 3u);
  EXPECT_EQ(free({}, 2), 2u);
  EXPECT_EQ(free({}, 4), 0u);
  EXPECT_EQ(free({"a", "nobody"}, 1), 1u);
  EXPECT_TRUE(take(3, {}, 2).empty());
  EXPECT_EQ(free({}, 1), 3u) << "all or none";
  {
    const auto named = take(2, {"c", "a"}, 1);
    ASSERT_EQ(named.size(), 2u);
    EXPECT_EQ(named[0]->host().info().name, "c");
    EXPECT_EQ(named[1]->host().info().name, "a");
    EXPECT_EQ(free({}, 1), 1u);
    EXPECT_TRUE(take(1, {"a"}, 1).empty());
    const auto rest = take(1, {}, 2);
    ASSERT_EQ(rest.size(), 1u);
    rest[0]->begin("s");
    for (const auto& listed : registry_.hosts()) EXPECT_TRUE(listed.is_busy);
  }
  ASSERT_EQ(link->orders.size(), 1u) << "what ran is stopped";
  EXPECT_EQ(std::get<StopOrder>(link->orders[0]).start, "s");
  EXPECT_EQ(free({}, 1), 3u);
  a->leave("gone");
  EXPECT_EQ(free({}, 1), 2u);
}

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_F(HostRegistryTest, FilesAreReadAsLongAsAJobNeedsThem) {
  const TemporaryFolder folder("hosts");
  const fs::path file = folder.path() / "f";
  std::ofstream(file) << "0123456789";
  const auto read = [&](uint64_t offset, size_t max) { return registry_.read_shared("s", offset, max); };
  const auto code = [&] { return error_of([&] { read(0, 1); }).first; };
  EXPECT_EQ(code(), ErrorCode::kNotFound);
  auto one = registry_.share("s", file), two = registry_.share("s", file);
  EXPECT_EQ(read(0, 4), "0123");
  EXPECT_EQ(read(8, 4), "89");
  EXPECT_EQ(read(10, 4), "");
  one.reset();
  EXPECT_EQ(read(0, 10), "0123456789");
  two.reset();
  EXPECT_EQ(code(), ErrorCode::kNotFound);
}

HostFile file_of(const std::string& content, const std::string& path = "f") {
  Sha256 hash;
  hash.add(content);
  return {.path = path, .is_data = false, .size_bytes = content.size(), .sha256 = hash.finish()};
}

class FileCacheTest : public ::testing::Test {
 protected:
  // What `place` makes where `sent` comes, piece by piece.
  std::string placed(FileCache& cache, const HostFile& file, const std::string& sent) {
    const fs::path to = folder_.path() / "to";
    fs::remove(to);
    const auto fetch = [&](const HostFile&, const FileCache::Take& take) {
      ++fetched_;
      for (const char c : sent) take(std::string(1, c));
    };
    cache.place(file, to, fetch, [&] { return is_cancelled_; });
    return content_of(to);
  }
  std::vector<std::string> cached() {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder_.path() / "cache")) out.push_back(entry.path().filename());
    std::sort(out.begin(), out.end());
    return out;
  }
  TemporaryFolder folder_{"cache"};
  int fetched_ = 0;
  bool is_cancelled_ = false;
};

TEST_F(FileCacheTest, AFileComesOnce) {
  fs::create_directories(folder_.path() / "cache" / "half");
  FileCache cache(folder_.path() / "cache", 0);
  EXPECT_TRUE(cached().empty()) << "what was not done is gone";
  const HostFile file = file_of("abc");
  EXPECT_EQ(placed(cache, file, "abc"), "abc");
  EXPECT_EQ(placed(cache, file, ""), "abc");
  EXPECT_EQ(fetched_, 1);
  FileCache again(folder_.path() / "cache", 0);
  EXPECT_EQ(placed(again, file, ""), "abc");
  EXPECT_EQ(fetched_, 1);
  std::ofstream(folder_.path() / "cache" / file.sha256) << "abd";  // by somebody else
  EXPECT_EQ(placed(cache, file, "abc"), "abc");
  EXPECT_EQ(fetched_, 2);
}

TEST_F(FileCacheTest, OtherBytesThanWereAnnouncedAreRefused) {
  FileCache cache(folder_.path() / "cache", 0);
  const HostFile file = file_of("abc");
  for (const char* sent : {"", "ab", "abd", "abcd"}) {
    EXPECT_EQ(error_of([&] { placed(cache, file, sent); }).first, ErrorCode::kDataLoss) << sent;
    EXPECT_TRUE(cached().empty()) << sent;
  }
  HostFile longer = file;
  longer.size_bytes = 4;
  EXPECT_EQ(error_of([&] { placed(cache, longer, "abc"); }).first, ErrorCode::kDataLoss);
  is_cancelled_ = true;
  EXPECT_EQ(error_of([&] { placed(cache, file, "abc"); }).first, ErrorCode::kCancelled);
  EXPECT_TRUE(cached().empty());
  const std::string good = file.sha256;
  for (const std::string& name :
       {good.substr(1), good + "0", "A" + good.substr(1), "g" + good.substr(1), std::string()}) {
    EXPECT_EQ(error_of([&] { placed(cache, {.path = "f", .size_bytes = 3, .sha256 = name}, "abc"); }).second,
              concat("files.sha256: '", name, "' is no SHA-256"));
  }
}

TEST_F(FileCacheTest, WhatWasNotUsedForLongestMakesRoom) {
  FileCache cache(folder_.path() / "cache", 6);
  const HostFile a = file_of("aaa"), b = file_of("bbb"), c = file_of("ccc"), large = file_of("dddddd");
  const auto sorted = [](std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    return names;
  };
  placed(cache, a, "aaa");
  placed(cache, b, "bbb");
  EXPECT_EQ(cached(), sorted({a.sha256, b.sha256})) << "they fit";
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(folder_.path() / "cache" / a.sha256, now);
  fs::last_write_time(folder_.path() / "cache" / b.sha256, now - std::chrono::hours(1));
  placed(cache, c, "ccc");
  EXPECT_EQ(cached(), sorted({a.sha256, c.sha256}));
  EXPECT_EQ(error_of([&] { placed(cache, file_of("eeeeeee"), "eeeeeee"); }).first, ErrorCode::kResourceExhausted);
  EXPECT_EQ(cached(), sorted({a.sha256, c.sha256}));
  EXPECT_EQ(placed(cache, large, "dddddd"), "dddddd");
  EXPECT_EQ(cached(), sorted({large.sha256}));
}

class HostedRanksTest : public ::testing::Test {
 protected:
  HostedRanksTest() { make(1); }
  void make(int64_t processes, const fs::path& data_folder = {}) {
    HostedRanks::Options options;
    options.data_folder = data_folder.string();
    options.processes = processes;
    make(std::move(options));
  }
  void make(HostedRanks::Options options) {
    options.folder = folder_.path() / "ranks";
    options.host = "h";
    ranks_ = std::make_unique<HostedRanks>(
        std::move(options), cache_, [this](HostReport report) { add(std::move(report)); },
        [](const HostFile&, const FileCache::Take& take) { take("abc"); });
  }
  void add(HostReport report) {
    const std::lock_guard lock(mutex_);
    reports_.push_back(std::move(report));
    changed_.notify_all();
  }
  // The next report that is a T.
  template <class T>
  T next() {
    std::unique_lock lock(mutex_);
    for (;; ++seen_) {
      changed_.wait(lock, [&] { return seen_ < reports_.size(); });
      if (const T* found = std::get_if<T>(&reports_[seen_])) return ++seen_, *found;
    }
  }
  std::string refusal(const HostOrder& order) {
    return error_of([&] { ranks_->take(order); }).second;
  }
  TemporaryFolder folder_{"hosted"};
  FileCache cache_{folder_.path() / "cache", 0};
  std::mutex mutex_;  // guards the next three
  std::condition_variable changed_;
  std::vector<HostReport> reports_;
  size_t seen_ = 0;
  std::unique_ptr<HostedRanks> ranks_;
};

TEST_F(HostedRanksTest, StartsAndPathsAreChecked) {
  for (const size_t size : {8, 64}) EXPECT_NO_THROW(ranks_->take(PrepareOrder{std::string(size, 'a'), {}, 5}));
  for (const std::string& start :
       {std::string(7, 'a'), std::string(65, 'a'), std::string("0123456g"), std::string("0123456A")}) {
    EXPECT_EQ(refusal(PrepareOrder{start, {}, 5}), concat("start: '", start.substr(0, 64), "' is no name of a start"));
  }
  for (const std::string& path : {std::string(), std::string("/x"), std::string("../x"), std::string("a/../x"),
                                  std::string("a/.."), std::string(4097, 'x')}) {
    EXPECT_EQ(refusal(PrepareOrder{"01234567", {file_of("abc", path)}, 5}),
              concat("files.path: '", path.substr(0, 256), "' is no path in a folder"));
  }
  EXPECT_EQ(refusal(PrepareOrder{"01234567", std::vector(1025, file_of("abc")), 5}), "files: more than 1024");
  std::vector<HostFile> files;
  for (int i = 0; i < 1024; ++i) files.push_back(file_of("abc", "d/..." + std::to_string(i)));
  ranks_->take(PrepareOrder{"01234567", files, 5});
  EXPECT_EQ(next<PreparedReport>().start, std::string(8, 'a'));
}

TEST_F(HostedRanksTest, FilesAreThereUntilTheStartIsStopped) {
  ranks_->take(PrepareOrder{"01234567", {file_of("abc", "d/f")}, 5});
  EXPECT_EQ(next<PreparedReport>().start, "01234567");
  const fs::path file = folder_.path() / "ranks" / "01234567" / "d" / "f";
  EXPECT_EQ(content_of(file), "abc");
  ranks_->take(StopOrder{"76543210"});  // of the past
  EXPECT_TRUE(fs::exists(file));
  ranks_->take(StopOrder{"01234567"});
  EXPECT_FALSE(fs::exists(file.parent_path().parent_path()));
  ranks_->take(PrepareOrder{"01234567", {file_of("abd", "d/f")}, 5});
  EXPECT_EQ(next<FailedReport>().code, ErrorCode::kDataLoss);
}

// Data that lies here already is read where it lies, unless some of it has to be fetched: then all is in one folder.
TEST_F(HostedRanksTest, DataThatIsHereAlreadyStays) {
  const fs::path own = folder_.path() / "own", start = folder_.path() / "ranks" / "01234567";
  fs::create_directories(own);
  std::ofstream(own / "same") << "abc";
  std::ofstream(own / "same too") << "abd";
  std::ofstream(own / "other") << "xyz";
  std::ofstream(own / "longer") << "abcd";
  const auto data = [](const std::string& content, const std::string& path) {
    HostFile file = file_of(content, path);
    file.is_data = true;
    return file;
  };
  make(1, own);
  const std::vector<HostFile> both{data("abc", "same"), data("abd", "same too"), file_of("abc", "base.pt")};
  ranks_->take(PrepareOrder{"01234567", both, 5});
  next<PreparedReport>();
  EXPECT_EQ(content_of(start / "base.pt"), "abc");
  EXPECT_FALSE(fs::exists(start / "data"));
  for (const char* path : {"other", "longer", "missing", "../own/same"}) {
    SCOPED_TRACE(path);
    const bool is_outside = path[0] == '.';
    ranks_->take(StopOrder{"01234567"});
    const PrepareOrder order{"01234567", {data("abd", "same too"), data("abc", path)}, 5};
    if (is_outside) {
      EXPECT_NE(refusal(order), "");
      continue;
    }
    ranks_->take(order);
    next<PreparedReport>();
    EXPECT_EQ(content_of(start / "data" / "same too"), "abd") << "which can only be its own: abc would be fetched";
    EXPECT_EQ(content_of(start / "data" / path), "abc");
  }
  EXPECT_EQ(content_of(own / "other"), "xyz");
  EXPECT_EQ(content_of(own / "longer"), "abcd");
}

TEST_F(HostedRanksTest, ACoordinatorThatIsSilentIsGoneAfterItsOwnTime) {
  EXPECT_EQ(ranks_->silence_limit().count(), 30);
  for (const auto& [asked, given] :
       {std::pair(0, 1), std::pair(1, 1), std::pair(7, 7), std::pair(86400, 86400), std::pair(86401, 86400)}) {
    ranks_->take(PrepareOrder{"01234567", {}, asked});
    EXPECT_EQ(ranks_->silence_limit().count(), given);
  }
  ranks_->take(StopOrder{"76543210"});
  EXPECT_EQ(ranks_->silence_limit().count(), 86400);
  ranks_->take(StopOrder{"01234567"});
  EXPECT_EQ(ranks_->silence_limit().count(), 30);
}

TEST_F(HostedRanksTest, AStartBeginsOnceWithAsManyRanksAsAreAllowed) {
  for (const int64_t processes : {1, 3}) {
    make(processes);
    for (const size_t count : {size_t{0}, static_cast<size_t>(processes) + 1}) {
      ranks_->take(PrepareOrder{"01234567", {}, 5});
      ranks_->take(StartOrder{"76543210", {0}, ""});  // of the past
      ranks_->take(StartOrder{"01234567", std::vector<int64_t>(count), ""});
      EXPECT_EQ(next<FailedReport>().message, concat("ranks: this host starts at most ", processes, ", got ", count));
      EXPECT_EQ(refusal(StartOrder{"01234567", {0}, ""}), "start: it has begun already");
    }
    ranks_->take(PrepareOrder{"01234567", {}, 5});
    ranks_->take(StartOrder{"01234567", std::vector<int64_t>(static_cast<size_t>(processes)), "no task"});
    EXPECT_EQ(next<FailedReport>().message.find("ranks: "), std::string::npos);
  }
}

// What a rank's process is, and the order to start some of them.
class StartedRanksTest : public HostedRanksTest {
 protected:
  std::string program(const std::string& script) const {
    const fs::path path = folder_.path() / "rank";
    std::ofstream(path) << "#!/bin/sh\nread -r task\n" << script;
    fs::permissions(path, fs::perms::owner_all);
    return path.string();
  }
  void start(std::vector<int64_t> numbers, const RankTask& task = {}) {
    ranks_->take(PrepareOrder{"01234567", {}, 5});
    next<PreparedReport>();
    ranks_->take(StartOrder{"01234567", std::move(numbers), to_text(task)});
  }
};

TEST_F(StartedRanksTest, EachRankSaysHowItEndedOnce) {
  const fs::path gate = folder_.path() / "gate";
  ASSERT_EQ(mkfifo(gate.c_str(), 0600), 0);
  HostedRanks::Options options;
  options.processes = 2;
  options.program = program(concat("case $task in *'\"rank\":5,'*) read -r line <", gate.string(),
                                   "; echo five; exit 5;; esac\necho three >&3\nexit 3\n"));
  make(std::move(options));
  start({3, 5});
  EXPECT_EQ(next<StartedReport>().rank, 3);
  EXPECT_EQ(next<StartedReport>().rank, 5);
  const LineReport three = next<LineReport>();
  EXPECT_EQ(std::tuple(three.rank, three.is_event, three.line), std::tuple(3, true, "three"));
  const EndedReport first = next<EndedReport>();
  EXPECT_EQ(std::pair(first.rank, first.how), std::pair(int64_t{3}, std::string("exit code 3")));
  std::ofstream(gate) << "go\n";
  const LineReport five = next<LineReport>();
  EXPECT_EQ(std::tuple(five.rank, five.is_event, five.line), std::tuple(5, false, "five"));
  const EndedReport second = next<EndedReport>();
  EXPECT_EQ(std::pair(second.rank, second.how), std::pair(int64_t{5}, std::string("exit code 5")));
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(std::ranges::count_if(reports_,
                                  [](const HostReport& report) { return std::holds_alternative<EndedReport>(report); }),
            2);
}

// The smaller of what the job wants and of this host's share for each of its ranks here.
TEST_F(StartedRanksTest, MemoryOfARank) {
  struct Case {
    uint64_t host, job;
    std::vector<int64_t> ranks;
    uint64_t expected;
  };
  for (const Case& c : {Case{0, 0, {0}, 0}, Case{0, 70, {0}, 70}, Case{100, 0, {0}, 100}, Case{100, 70, {0}, 70},
                        Case{100, 700, {0}, 100}, Case{100, 0, {0, 1}, 50}, Case{100, 70, {0, 1}, 50}}) {
    HostedRanks::Options options;
    options.processes = 2;
    options.memory_bytes = c.host;
    options.program = program("echo \"$task\"\n");
    make(std::move(options));
    RankTask task;
    task.memory_bytes = c.job;
    start(c.ranks, task);
    EXPECT_EQ(rank_task_from_text(next<LineReport>().line).memory_bytes, c.expected) << c.host << " " << c.job;
  }
}

TEST_F(HostedRanksTest, PathsStayInTheFolder) {
  const auto refused = [&](const std::string& path) {
    return refusal(PrepareOrder{"01234567", {file_of("abc", path)}, 5});
  };
  for (const char* path : {"", "/abc", "../abc", "a/../../abc", ".."}) {
    EXPECT_EQ(refused(path), concat("files.path: '", path, "' is no path in a folder"));
  }
  const std::string longest(4096, 'a');
  EXPECT_EQ(refused(longest + 'a'), concat("files.path: '", longest.substr(0, 256), "' is no path in a folder"));
  ranks_->take(PrepareOrder{"01234567", {file_of("abc", longest)}, 5});
  EXPECT_EQ(next<FailedReport>().start, "01234567");  // of the file system's own bound
}

TEST_F(HostedRanksTest, OrdersWithoutAStartDoNothing) {
  ranks_->take(StartOrder{"01234567", {0}, ""});
  ranks_->take(StopOrder{"01234567"});
  EXPECT_EQ(ranks_->silence_limit().count(), 30);
}

TEST(RemoteHosts, OtherHostsThatAreNeeded) {
  EXPECT_EQ(RemoteHosts::needed({}, 1), 0U);
  DistributionSpec spec;
  spec.world_size = 4;
  for (const auto& [processes, hosts] : {std::pair(4, 0), std::pair(3, 1), std::pair(2, 1), std::pair(1, 3)}) {
    spec.processes_per_host = processes;
    EXPECT_EQ(RemoteHosts::needed(spec, 4), static_cast<size_t>(hosts)) << processes;
  }
}

TEST(HostMessages, CodesThatAreNoneAreInternal) {
  EXPECT_EQ(error_code_of(0), static_cast<ErrorCode>(0));
  EXPECT_EQ(error_code_of(static_cast<int64_t>(ErrorCode::kInternal)), ErrorCode::kInternal);
  EXPECT_EQ(error_code_of(static_cast<int64_t>(ErrorCode::kInternal) + 1), ErrorCode::kInternal);
  EXPECT_EQ(error_code_of(-1), ErrorCode::kInternal);
  EXPECT_EQ(error_code_of(1), static_cast<ErrorCode>(1));
}

}  // namespace
}  // namespace tensord::server
