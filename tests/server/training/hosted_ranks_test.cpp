// The ranks of another daemon's job on this host: their files, processes and memory.
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
#include "server/training/hosts/hosted_ranks.h"
#include "server/training/ranks/rank_task.h"
#include "tests/server/training/host_files.h"

namespace tensord::server::hosted_ranks_test {
namespace {

using fixtures::TemporaryFolder;

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
  // The next report of type T.
  template <class T>
  T next() {
    std::unique_lock lock(mutex_);
    for (;; ++seen_) {
      changed_.wait(lock, [&] { return seen_ < reports_.size(); });
      if (const T* found = std::get_if<T>(&reports_[seen_])) return ++seen_, *found;
    }
  }
  std::string refusal(const HostOrder& order) {
    return code_and_text_of([&] { ranks_->take(order); }).second;
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
    EXPECT_EQ(refusal(PrepareOrder{start, {}, 5}),
              concat("start: '", start.substr(0, 64), "' is not a name of a start"));
  }
  for (const std::string& path : {std::string(), std::string("/x"), std::string("../x"), std::string("a/../x"),
                                  std::string("a/.."), std::string(4097, 'x')}) {
    EXPECT_EQ(refusal(PrepareOrder{"01234567", {file_of("abc", path)}, 5}),
              concat("files.path: '", path.substr(0, 256), "' is not a path in a folder"));
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
  ranks_->take(StopOrder{"76543210"});  // of an earlier job
  EXPECT_TRUE(fs::exists(file));
  ranks_->take(StopOrder{"01234567"});
  EXPECT_FALSE(fs::exists(file.parent_path().parent_path()));
  ranks_->take(PrepareOrder{"01234567", {file_of("abd", "d/f")}, 5});
  EXPECT_EQ(next<FailedReport>().code, ErrorCode::kDataLoss);
}

// Local data is read in place, unless some of it must be fetched: then all of it is in one folder.
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
      ranks_->take(StartOrder{"76543210", {0}, ""});  // of an earlier job
      ranks_->take(StartOrder{"01234567", std::vector<int64_t>(count), ""});
      EXPECT_EQ(next<FailedReport>().message, concat("ranks: this host starts at most ", processes, ", got ", count));
      EXPECT_EQ(refusal(StartOrder{"01234567", {0}, ""}), "start: it has begun already");
    }
    ranks_->take(PrepareOrder{"01234567", {}, 5});
    ranks_->take(StartOrder{"01234567", std::vector<int64_t>(static_cast<size_t>(processes)), "no task"});
    EXPECT_EQ(next<FailedReport>().message.find("ranks: "), std::string::npos);
  }
}

// The program of a rank's process, and the order to start some ranks.
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

// The smaller of the job's request and each rank's share of this host.
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
    EXPECT_EQ(refused(path), concat("files.path: '", path, "' is not a path in a folder"));
  }
  const std::string longest(4096, 'a');
  EXPECT_EQ(refused(longest + 'a'), concat("files.path: '", longest.substr(0, 256), "' is not a path in a folder"));
  ranks_->take(PrepareOrder{"01234567", {file_of("abc", longest)}, 5});
  EXPECT_EQ(next<FailedReport>().start, "01234567");  // of the file system's own limit
}

TEST_F(HostedRanksTest, OrdersWithoutAStartDoNothing) {
  ranks_->take(StartOrder{"01234567", {0}, ""});
  ranks_->take(StopOrder{"01234567"});
  EXPECT_EQ(ranks_->silence_limit().count(), 30);
}

}  // namespace
}  // namespace tensord::server::hosted_ranks_test
