// Which hosts have joined, who uses them, and which files they may read.
#include "server/training/hosts/host_registry.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/server/error_of.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::host_registry_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct FakeLink final : HostLink {
  void send(const HostOrder& order) override { orders.push_back(order); }
  void close(const Error& reason) override { closed = reason.what(); }
  std::vector<HostOrder> orders;
  std::string closed;
};

constexpr const char* kInstance = "0123456789abcdef";

HostInfo info_of(const std::string& name, int64_t processes = 4, const std::string& instance = kInstance) {
  return {.name = name, .instance = instance, .version = "1", .processes = processes, .address = "10.0.0.2"};
}

struct HostRegistryTest : ::testing::Test {
  std::shared_ptr<JoinedHost> join(const HostInfo& info) {
    links.push_back(std::make_shared<FakeLink>());
    return registry.join(info, links.back());
  }
  std::vector<std::string> names_of(const std::vector<std::unique_ptr<HostRegistry::Lease>>& leases) {
    std::vector<std::string> names;
    for (const auto& lease : leases) names.push_back(lease->host().info().name);
    return names;
  }
  ManualClock clock;
  HostRegistry registry{"1", clock};
  std::vector<std::shared_ptr<FakeLink>> links;
};

TEST_F(HostRegistryTest, RefusesWhatIsNoHost) {
  for (const std::string& name :
       {std::string(), std::string("a/b"), std::string("a b"), std::string("\n"), std::string(254, 'a')}) {
    EXPECT_EQ(error_of([&] { join(info_of(name)); }).code(), ErrorCode::kInvalidArgument) << name;
  }
  EXPECT_THAT(error_of([&] { join(info_of("a", 0)); }).what(), HasSubstr("processes: must be above 0"));
  EXPECT_THAT(error_of([&] { join(info_of("a", 4, "short")); }).what(), HasSubstr("instance: must have 16 to 64"));
  HostInfo other = info_of("a");
  other.version = "2";
  const Error error = error_of([&] { join(other); });
  EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
  EXPECT_THAT(error.what(), HasSubstr("host a runs tensord 2, and this daemon 1"));
  EXPECT_TRUE(registry.hosts().empty());
}

TEST_F(HostRegistryTest, ANameIsOneHosts) {
  const auto first = join(info_of("a"));
  EXPECT_EQ(error_of([&] { join(info_of("a", 4, "another-instance")); }).code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(first->left(), "");
  // The same process joins again: its old stream has ended.
  const auto again = join(info_of("a", 8));
  EXPECT_EQ(first->left(), "it has joined again");
  EXPECT_EQ(links.front()->closed, "it has joined again");
  // When the old stream ends later, the new one is unaffected.
  registry.leave(first, "the stream has ended");
  ASSERT_EQ(registry.hosts().size(), 1u);
  EXPECT_EQ(registry.hosts()[0].info.processes, 8);
  registry.leave(again, "the stream has ended");
  EXPECT_TRUE(registry.hosts().empty());
  EXPECT_EQ(again->left(), "the stream has ended");
}

TEST_F(HostRegistryTest, LendsEachHostOnce) {
  for (const char* name : {"c", "a", "b"}) join(info_of(name, name[0] == 'b' ? 2 : 4));
  EXPECT_EQ(registry.free_hosts({}, 1), 3u);
  EXPECT_EQ(registry.free_hosts({}, 3), 2u);
  EXPECT_TRUE(registry.take(3, {}, 3).empty());  // all or none
  EXPECT_EQ(registry.free_hosts({}, 1), 3u);
  {
    const auto leases = registry.take(2, {}, 1);
    EXPECT_THAT(names_of(leases), ElementsAre("a", "b"));
    EXPECT_EQ(registry.free_hosts({}, 1), 1u);
    EXPECT_TRUE(registry.hosts()[0].is_busy);
    EXPECT_FALSE(registry.hosts()[2].is_busy);
    EXPECT_TRUE(registry.take(1, {"a"}, 1).empty());
  }
  EXPECT_THAT(names_of(registry.take(2, {"c", "missing", "a"}, 1)), ElementsAre("c", "a"));
  EXPECT_TRUE(registry.take(2, {"c", "missing"}, 1).empty());
  EXPECT_THAT(names_of(registry.take(2, {}, 1, {"a"})), ElementsAre("b", "c"));
  EXPECT_TRUE(registry.take(1, {"a"}, 1, {"a"}).empty());
  EXPECT_EQ(registry.free_hosts({}, 1, {"a", "c"}), 1u);
}

TEST_F(HostRegistryTest, ALeaseStopsWhatItBegan) {
  join(info_of("a"));
  { const auto unused = registry.take(1, {}, 1); }
  EXPECT_TRUE(links[0]->orders.empty());
  {
    const auto leases = registry.take(1, {}, 1);
    leases[0]->begin("first");
    leases[0]->begin("second");
  }
  ASSERT_EQ(links[0]->orders.size(), 1u);
  EXPECT_EQ(std::get<StopOrder>(links[0]->orders[0]).start, "second");
}

TEST_F(HostRegistryTest, ReportsAreOfTheStartThatRuns) {
  const auto host = join(info_of("a"));
  host->receive(PreparedReport{"early"});
  host->begin("now");
  host->receive(PreparedReport{"early"});
  host->receive(std::monostate());
  host->receive(LineReport{"now", 1, false, "hello"});
  host->receive(EndedReport{"now", 1, "exit code 0"});
  const auto reports = host->take_reports();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(std::get<LineReport>(reports[0]).line, "hello");
  EXPECT_EQ(std::get<EndedReport>(reports[1]).how, "exit code 0");
  EXPECT_TRUE(host->take_reports().empty());
  host->begin("later");
  host->receive(EndedReport{"now", 1, "exit code 0"});
  EXPECT_TRUE(host->take_reports().empty());
}

TEST_F(HostRegistryTest, WhatAHostSaysIsBounded) {
  const auto host = join(info_of("a"));
  host->begin("now");
  const LineReport line{"now", 0, false, std::string(1 << 20, 'x')};
  const Error error = error_of([&] {
    for (int i = 0; i < 65; ++i) host->receive(line);
  });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.what(), HasSubstr("host a says more than is read"));
  // A reader makes room.
  for (int i = 0; i < 200; ++i) {
    host->take_reports();
    host->receive(line);
  }
}

TEST_F(HostRegistryTest, AHostThatHasLeftIsLentToNobody) {
  const auto host = join(info_of("a"));
  host->leave("cut off");
  host->leave("later");
  EXPECT_EQ(host->left(), "cut off");
  EXPECT_EQ(registry.free_hosts({}, 1), 0u);
}

constexpr int64_t kSecond = 1'000'000'000;

TEST_F(HostRegistryTest, AHostThatIsSilentForTwoSecondsIsLentToNobody) {
  const auto host = join(info_of("a"));
  clock.advance_ns(2 * kSecond - 1);
  EXPECT_EQ(registry.free_hosts({}, 1), 1u);
  clock.advance_ns(1);
  EXPECT_EQ(registry.free_hosts({}, 1), 0u);
  EXPECT_EQ(host->silence(), std::chrono::seconds(2));
  host->receive(std::monostate());
  EXPECT_EQ(registry.free_hosts({}, 1), 1u);
}

TEST_F(HostRegistryTest, AHostThatIsSilentForTenSecondsGivesItsNameAway) {
  const auto first = join(info_of("a"));
  const auto other = [&] { return join(info_of("a", 8, "another-instance")); };
  clock.advance_ns(10 * kSecond - 1);
  EXPECT_EQ(error_of(other).code(), ErrorCode::kAlreadyExists);
  clock.advance_ns(1);
  other();
  EXPECT_EQ(first->left(), "it has joined again");
  EXPECT_EQ(registry.hosts()[0].info.processes, 8);
}

TEST_F(HostRegistryTest, NobodyJoinsAfterItsEnd) {
  join(info_of("a"));
  registry.close();
  EXPECT_EQ(links[0]->closed, "the server is shutting down");
  EXPECT_EQ(error_of([&] { join(info_of("b")); }).code(), ErrorCode::kUnavailable);
}

TEST_F(HostRegistryTest, FilesAreReadInPiecesWhileTheyAreShared) {
  const fixtures::TemporaryFolder folder("registry");
  const auto path = folder.path() / "file";
  std::ofstream(path) << "0123456789";
  const std::string sha256(64, 'a');
  EXPECT_EQ(error_of([&] { registry.read_shared(sha256, 0, 4); }).code(), ErrorCode::kNotFound);
  auto first = registry.share(sha256, path);
  {
    const auto second = registry.share(sha256, path);  // of another job
    EXPECT_EQ(registry.read_shared(sha256, 0, 4), "0123");
  }
  EXPECT_EQ(registry.read_shared(sha256, 8, 4), "89");
  EXPECT_EQ(registry.read_shared(sha256, 10, 4), "");
  EXPECT_EQ(registry.read_shared(sha256, 1000, 4), "");
  std::filesystem::remove(path);
  EXPECT_EQ(error_of([&] { registry.read_shared(sha256, 0, 4); }).code(), ErrorCode::kDataLoss);
  first.reset();
  EXPECT_EQ(error_of([&] { registry.read_shared(sha256, 0, 4); }).code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tensord::server::host_registry_test
