// Daemons that join another one: which are admitted, which of their reports are kept, which of them a job gets, and the
// files that they get for it.
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
#include "tests/server/training/host_files.h"

namespace tensord::server::training_hosts_test {
namespace {

using fixtures::TemporaryFolder;

struct FakeLink final : HostLink {
  void send(const HostOrder& order) override { orders.push_back(order); }
  void close(const Error& reason) override { closed.push_back(reason.code()); }
  std::vector<HostOrder> orders;
  std::vector<ErrorCode> closed;
};

HostInfo info_of(const std::string& name, const std::string& instance = std::string(16, 'i'), int64_t processes = 1) {
  return {.name = name, .instance = instance, .version = "1", .processes = processes, .address = "127.0.0.1"};
}

class TrainingHostRegistry : public ::testing::Test {
 protected:
  std::shared_ptr<JoinedHost> join(const HostInfo& info) { return registry_.join(info, std::make_shared<FakeLink>()); }
  std::pair<ErrorCode, std::string> refusal(const HostInfo& info) {
    return code_and_text_of([&] { join(info); });
  }
  std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto& listed : registry_.hosts()) out.push_back(listed.info.name);
    return out;
  }
  const ManualClock clock_;
  HostRegistry registry_{"1", clock_};
};

TEST_F(TrainingHostRegistry, NamesInstancesAndProcessesHaveBounds) {
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

TEST_F(TrainingHostRegistry, ANameIsOfOneProcess) {
  const auto link = std::make_shared<FakeLink>();
  const auto first = registry_.join(info_of("a"), link);
  EXPECT_EQ(refusal(info_of("a", std::string(16, 'j'))).first, ErrorCode::kAlreadyExists);
  const auto second = join(info_of("a"));
  EXPECT_EQ(first->left(), "it has joined again");
  EXPECT_EQ(link->closed, std::vector{ErrorCode::kCancelled});
  registry_.leave(first, "late");  // does not affect the second
  EXPECT_EQ(first->left(), "it has joined again") << "the first reason stays";
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
  registry_.leave(second, "gone");
  EXPECT_EQ(second->left(), "gone");
  EXPECT_TRUE(names().empty());
}

TEST_F(TrainingHostRegistry, AtMost1024Join) {
  std::shared_ptr<JoinedHost> last;
  for (int i = 0; i < 1024; ++i) last = join(info_of("h" + std::to_string(i)));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(refusal(info_of("more")).first, ErrorCode::kResourceExhausted);
  EXPECT_EQ(names().size(), 1024u);
  EXPECT_NO_THROW(join(info_of("h0"))) << "one that is there may come again";
  registry_.leave(last, "");
  EXPECT_NO_THROW(join(info_of("more")));
}

TEST_F(TrainingHostRegistry, NobodyJoinsWhatHasClosed) {
  const auto link = std::make_shared<FakeLink>();
  registry_.join(info_of("a"), link);
  registry_.close();
  EXPECT_EQ(link->closed, std::vector{ErrorCode::kUnavailable});
  EXPECT_EQ(refusal(info_of("b")), std::pair(ErrorCode::kUnavailable, std::string("the server is shutting down")));
}

TEST_F(TrainingHostRegistry, ReportsAreOfTheStartThatWasBegunLast) {
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

// Each report costs 256 bytes plus its line.
TEST_F(TrainingHostRegistry, ReportsThatNobodyReadsEndAt64Megabytes) {
  const auto host = join(info_of("a"));
  const auto fill = [&](size_t bytes) { host->receive(LineReport{"s", 0, false, std::string(bytes - 256, 'x')}); };
  for (const bool is_taken : {true, false}) {
    host->begin("s");
    fill(64 << 20);
    if (is_taken) host->take_reports();
    if (!is_taken) host->begin("s");
    fill((64 << 20) - 256);
    host->receive(PreparedReport{"s"});
    EXPECT_EQ(code_and_text_of([&] { host->receive(PreparedReport{"s"}); }),
              std::pair(ErrorCode::kResourceExhausted, std::string("host a says more than is read")));
  }
}

TEST_F(TrainingHostRegistry, AJobGetsFreeHostsThatCanTakeItsProcesses) {
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

TEST_F(TrainingHostRegistry, FilesAreReadAsLongAsAJobNeedsThem) {
  const TemporaryFolder folder("hosts");
  const fs::path file = folder.path() / "f";
  std::ofstream(file) << "0123456789";
  const auto read = [&](uint64_t offset, size_t max) { return registry_.read_shared("s", offset, max); };
  const auto code = [&] { return code_and_text_of([&] { read(0, 1); }).first; };
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

class TrainingFileCache : public ::testing::Test {
 protected:
  // The result of `place` when `sent` arrives in pieces.
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

TEST_F(TrainingFileCache, AFileComesOnce) {
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
  std::ofstream(folder_.path() / "cache" / file.sha256) << "abd";  // by another process
  EXPECT_EQ(placed(cache, file, "abc"), "abc");
  EXPECT_EQ(fetched_, 2);
}

TEST_F(TrainingFileCache, OtherBytesThanWereAnnouncedAreRefused) {
  FileCache cache(folder_.path() / "cache", 0);
  const HostFile file = file_of("abc");
  for (const char* sent : {"", "ab", "abd", "abcd"}) {
    EXPECT_EQ(code_and_text_of([&] { placed(cache, file, sent); }).first, ErrorCode::kDataLoss) << sent;
    EXPECT_TRUE(cached().empty()) << sent;
  }
  HostFile longer = file;
  longer.size_bytes = 4;
  EXPECT_EQ(code_and_text_of([&] { placed(cache, longer, "abc"); }).first, ErrorCode::kDataLoss);
  is_cancelled_ = true;
  EXPECT_EQ(code_and_text_of([&] { placed(cache, file, "abc"); }).first, ErrorCode::kCancelled);
  EXPECT_TRUE(cached().empty());
  const std::string good = file.sha256;
  for (const std::string& name :
       {good.substr(1), good + "0", "A" + good.substr(1), "g" + good.substr(1), std::string()}) {
    EXPECT_EQ(code_and_text_of([&] { placed(cache, {.path = "f", .size_bytes = 3, .sha256 = name}, "abc"); }).second,
              concat("files.sha256: '", name, "' is not a SHA-256"));
  }
}

TEST_F(TrainingFileCache, WhatWasNotUsedForLongestMakesRoom) {
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
  EXPECT_EQ(code_and_text_of([&] { placed(cache, file_of("eeeeeee"), "eeeeeee"); }).first,
            ErrorCode::kResourceExhausted);
  EXPECT_EQ(cached(), sorted({a.sha256, c.sha256}));
  EXPECT_EQ(placed(cache, large, "dddddd"), "dddddd");
  EXPECT_EQ(cached(), sorted({large.sha256}));
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

// One host is free; the message says how many more are needed for the job's ranks beyond two.
TEST_F(TrainingHostRegistry, AJobThatHasTooFewHostsSaysHowMany) {
  const auto refusal_of = [&](int64_t world_size) {
    JobStatus status;
    status.spec.distribution.world_size = world_size;
    status.spec.distribution.processes_per_host = 1;
    status.spec.distribution.join_timeout_seconds = 0;
    const TrainingJob job(status);
    HostBackoff resting;
    RemoteHosts::Options options;
    options.registry = &registry_;
    options.resting = &resting;
    return code_and_text_of([&] { RemoteHosts(job, options).gather([](const std::string&) {}); });
  };
  EXPECT_EQ(refusal_of(2), std::pair(ErrorCode::kDeadlineExceeded,
                                     std::string("distribution: 1 other host is needed, with 1 processes each; within "
                                                 "0 seconds 0 had joined and were free")));
  join(info_of("a"));
  EXPECT_EQ(refusal_of(3),
            std::pair(ErrorCode::kDeadlineExceeded,
                      std::string("distribution: 2 other hosts are needed, with 1 processes each; within "
                                  "0 seconds 1 had joined and was free")));
}

TEST(HostMessages, CodesThatAreNoneAreInternal) {
  EXPECT_EQ(error_code_of(0), static_cast<ErrorCode>(0));
  EXPECT_EQ(error_code_of(static_cast<int64_t>(ErrorCode::kInternal)), ErrorCode::kInternal);
  EXPECT_EQ(error_code_of(static_cast<int64_t>(ErrorCode::kInternal) + 1), ErrorCode::kInternal);
  EXPECT_EQ(error_code_of(-1), ErrorCode::kInternal);
  EXPECT_EQ(error_code_of(1), static_cast<ErrorCode>(1));
}

}  // namespace
}  // namespace tensord::server::training_hosts_test
