// Access, limits and the HTTP port, each in isolation; tests/e2e/network_test.py tests them in the daemon.
#include <gmock/gmock.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "server/config/network_options.h"
#include "server/transport/access/access.h"
#include "server/transport/access/access_tokens.h"
#include "server/transport/access/http_access.h"
#include "server/transport/grpc/request_limits.h"

namespace tensord::server::network_test {
namespace {

using ::testing::HasSubstr;
using Answer = TokenTable::Answer;

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string error_of_flags(const std::string& flags) {
  NetworkOptions options;
  CLI::App app;
  add_network_options(app, options);
  app.parse(flags);
  return error_of([&] { validate(options); });
}

TEST(NetworkOptions, FlagsThatNeedEachOther) {
  EXPECT_EQ(error_of_flags(""), "no error");
  EXPECT_EQ(error_of_flags("--grpc-use-ssl true --grpc-server-cert a --grpc-server-key b"), "no error");
  EXPECT_THAT(error_of_flags("--grpc-use-ssl true --grpc-server-cert a"), HasSubstr("needs --grpc-server-cert and"));
  EXPECT_THAT(error_of_flags("--grpc-server-cert a"), HasSubstr("need --grpc-use-ssl"));
  EXPECT_THAT(error_of_flags("--grpc-use-ssl-mutual true --grpc-server-cert a --grpc-server-key b"),
              HasSubstr("--grpc-root-cert"));
  EXPECT_THAT(error_of_flags("--grpc-unix-socket-only true"), HasSubstr("--grpc-unix-socket"));
  EXPECT_THAT(error_of_flags("--grpc-unix-socket-mode 9"), HasSubstr("must be octal"));
  EXPECT_THAT(error_of_flags("--grpc-max-message-size 3GB"), HasSubstr("--grpc-max-message-size must be"));
  EXPECT_THAT(error_of_flags("--grpc-compressed-requests false --grpc-infer-response-compression-level low"),
              HasSubstr("needs --grpc-compressed-requests"));
  EXPECT_THAT(error_of_flags("--grpc-memory-quota 1MB"), HasSubstr("--client-memory-quota must be"));
  EXPECT_THAT(error_of_flags("--http-access-tokens true"), HasSubstr("needs --access-tokens"));
  for (const char* size : {"0", "-1", "-1024"}) {
    EXPECT_THAT(error_of_flags(concat("--http-max-input-size ", size)), HasSubstr("must be greater than 0"));
  }
  EXPECT_GE(NetworkOptions().memory_quota_bytes, uint64_t{64} << 20);
  EXPECT_EQ(error_of_flags("--grpc-memory-quota 1GB --grpc-max-message-size 64MB"), "no error");
  EXPECT_THAT(error_of_flags("--client-memory-quota 1MB"), HasSubstr("--client-memory-quota must be"));
}

TEST(AccessPolicy, RestrictedProtocolsAreRead) {
  const auto error = [](std::vector<std::string> rules) {
    NetworkOptions options;
    options.restricted_protocols = std::move(rules);
    return error_of([&] { AccessPolicy::make(options); });
  };
  EXPECT_EQ(error({"model-repository,statistics:admin=secret", "inference:user=a=b:c"}), "no error");
  EXPECT_THAT(error({"inference"}), HasSubstr("must be GROUP,…:KEY=VALUE, got 'inference'"));
  EXPECT_THAT(error({":a=b"}), HasSubstr("must be GROUP"));
  EXPECT_THAT(error({"inference:=b"}), HasSubstr("must be GROUP"));
  EXPECT_THAT(error({"nothing:a=b"}), HasSubstr("unknown restricted protocol 'nothing'"));
  EXPECT_THAT(error({"inference:a=b", "health,inference:c=d"}),
              HasSubstr("protocol 'inference' can not be specified in multiple"));
}

TEST(TokenTable, TokensOpenGroups) {
  const TokenTable table = TokenTable::parse(
      "# who may do what\n\ninference,metadata  user-token\nall admin-token\n\tstatistics user-token\n");
  EXPECT_EQ(table.find("user-token", CallGroup::kInference), Answer::kOpen);
  EXPECT_EQ(table.find("user-token", CallGroup::kStatistics), Answer::kOpen);
  EXPECT_EQ(table.find("user-token", CallGroup::kModelRepository), Answer::kOtherGroups);
  EXPECT_EQ(table.find("admin-token", CallGroup::kTraining), Answer::kOpen);
  for (const char* wrong : {"", "user-toke", "user-token ", "user-tokenuser-token", "USER-TOKEN", "#"}) {
    EXPECT_EQ(table.find(wrong, CallGroup::kInference), Answer::kUnknownToken) << wrong;
  }
  EXPECT_THAT(error_of([] { TokenTable::parse("inference\n"); }), HasSubstr("line 1 must be"));
  EXPECT_THAT(error_of([] { TokenTable::parse("\ninference a b\n"); }), HasSubstr("line 2 must be"));
  EXPECT_THAT(error_of([] { TokenTable::parse("nothing a\n"); }), HasSubstr("line 1: there is no group"));
  EXPECT_THAT(error_of([] { TokenTable::parse("# none\n"); }), HasSubstr("there is no token"));
}

TEST(TokenFile, ThatIsNotThereIsAnError) {
  EXPECT_THAT(error_of([] { TokenFile("/nowhere/tokens"); }), HasSubstr("cannot read /nowhere/tokens"));
}

TEST(RequestLimits, CountRequestsAndBytes) {
  RequestLimits limits(2, 100);
  auto first = limits.admit(60);
  {
    auto second = limits.admit(40);
    EXPECT_EQ(limits.requests(), 2u);
    EXPECT_EQ(limits.bytes(), 100u);
    EXPECT_THAT(error_of([&] { limits.admit(0); }), HasSubstr("2 requests under way"));
  }
  EXPECT_THAT(
      error_of([&] { limits.admit(41); }),
      HasSubstr("there is no room for 41 bytes more: clients have 60 of the 100 bytes of --client-memory-quota"));
  EXPECT_EQ(limits.bytes(), 60u);
  // A moved admission counts once.
  auto moved = std::move(first);
  EXPECT_EQ(limits.requests(), 1u);
  moved = {};
  EXPECT_EQ(limits.requests(), 0u);
  EXPECT_EQ(limits.bytes(), 0u);
  EXPECT_THAT(
      error_of([&] { limits.admit(101); }),
      HasSubstr("there is no room for 101 bytes more: clients have 0 of the 100 bytes of --client-memory-quota"));
  EXPECT_EQ(limits.requests(), 0u);
  RequestLimits none;
  const auto many = none.admit(UINT64_MAX / 2);
  EXPECT_EQ(none.requests(), 1u);
}

TEST(RequestLimits, OtherCallsCountTheirBytesAlone) {
  RequestLimits limits(1, 10'000);
  auto request = limits.admit(9'000);
  // A probe is admitted however much is in progress.
  auto probe = limits.hold(100);
  EXPECT_EQ(limits.bytes(), 9'000u);
  EXPECT_THAT(error_of([&] { limits.hold(5'000); }), HasSubstr("takes no more"));
  // Its decompressed size counts.
  probe.grow(1'000);
  EXPECT_THAT(error_of([&] { probe.grow(1); }), HasSubstr("takes no more"));
  EXPECT_EQ(limits.bytes(), 10'000u);
  probe = {};
  request = {};
  EXPECT_EQ(limits.bytes(), 0u);
  EXPECT_EQ(limits.requests(), 0u);
}

TEST(HttpAccess, TokensOpenMetricsAndHealthIsOpen) {
  const std::string path = (std::filesystem::temp_directory_path() / concat("tensord_tokens_", getpid())).string();
  std::ofstream(path) << "statistics,metadata watcher\ninference caller\n";
  NetworkOptions options;
  options.access_tokens = path;
  const AccessPolicy access = AccessPolicy::make(options);
  const auto status = [&](const std::string& authorization, const std::string& where = "/metrics") {
    HttpHead head;
    head.path = where;
    if (!authorization.empty()) head.headers.push_back({"authorization", authorization});
    const auto refused = refuse_http(access, head);
    return refused ? refused->status : 200;
  };
  EXPECT_EQ(status("Bearer watcher"), 200);
  EXPECT_EQ(status("Basic YW55Om5hbWU6d2F0Y2hlcg=="), 401);  // any:name:watcher: the password is "name:watcher"
  EXPECT_EQ(status("Basic YW55OndhdGNoZXI="), 200);          // any:watcher
  EXPECT_EQ(status("Basic OndhdGNoZXI="), 200);              // :watcher
  EXPECT_EQ(status("Bearer caller"), 403);
  for (const char* wrong :
       {"", "watcher", "Bearer ", "Bearer watcherx", "Basic !!!", "Basic d2F0Y2hlcg==", "Digest x"}) {
    EXPECT_EQ(status(wrong), 401) << wrong;
  }
  EXPECT_EQ(status("", "/status.json"), 401);
  EXPECT_EQ(status("", "/"), 401);
  EXPECT_EQ(status("", "/v2/health/live"), 200);
  EXPECT_EQ(status("", "/v2/models/m/versions/1/ready"), 200);
  EXPECT_THAT(refuse_http(access, {})->headers.at(0).value, HasSubstr("Basic realm"));
  HttpHead of_script;
  of_script.headers.push_back({"sec-fetch-dest", "empty"});  // no password dialog for each poll of a page
  EXPECT_EQ(refuse_http(access, of_script)->status, 401);
  EXPECT_EQ(refuse_http(access, of_script)->headers.at(0).value, "Bearer realm=\"tensord\"");
  std::filesystem::remove(path);
  EXPECT_FALSE(refuse_http(AccessPolicy(), {}));
}

}  // namespace
}  // namespace tensord::server::network_test
