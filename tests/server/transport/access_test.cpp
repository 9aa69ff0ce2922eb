// Which headers and tokens permit which calls, over gRPC and HTTP. tests/e2e/access_test.py tests every call in the
// daemon.
#include "server/transport/access/access.h"

#include <gmock/gmock.h>
#include <grpcpp/test/server_context_test_spouse.h>

#include <filesystem>
#include <fstream>

#include "server/transport/access/http_access.h"
#include "tests/server/error_of.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::access_test {
namespace {

using Code = grpc::StatusCode;
using Headers = std::vector<std::pair<std::string, std::string>>;
using fixtures::TemporaryFolder;
using ::testing::HasSubstr;

grpc::Status status(const AccessPolicy& access, CallGroup group, const Headers& headers = {}) {
  grpc::ServerContext context;
  grpc::testing::ServerContextTestSpouse spouse(&context);
  for (const auto& [key, value] : headers) spouse.AddClientMetadata(key, value);
  return access.check(context, group);
}
Code code(const AccessPolicy& access, CallGroup group, const Headers& headers = {}) {
  return status(access, group, headers).error_code();
}
int http(const AccessPolicy& access, CallGroup group, const Headers& headers = {}) {
  HttpHead head;
  head.path = "/v2/models/m/infer";
  for (const auto& [key, value] : headers) head.headers.push_back({key, value});
  const auto refused = refuse_call(access, head, group);
  return refused ? refused->status : 200;
}

std::vector<CallGroup> all_groups() {
  std::vector<CallGroup> groups;
  for (size_t i = 0; i < kCallGroups; ++i) groups.push_back(static_cast<CallGroup>(i));
  return groups;
}

TEST(CallGroups, NamesAreReadBack) {
  for (const CallGroup group : all_groups()) EXPECT_EQ(parse_call_group(to_string(group)), group);
  for (const char* name : {"", "Health", "inference ", "training-host", "all"}) {
    EXPECT_THAT(error_of([&] { parse_call_group(name); }).what(), HasSubstr("there is no group of calls")) << name;
  }
}

TEST(AccessPolicy, WithoutRulesAllIsOpen) {
  for (const CallGroup group : all_groups()) {
    EXPECT_EQ(code(AccessPolicy(), group), Code::OK);
    EXPECT_EQ(http(AccessPolicy(), group), 200);
    EXPECT_FALSE(AccessPolicy().needs_token(group));
  }
}

TEST(AccessPolicy, AGroupWithARuleNeedsItsHeader) {
  NetworkOptions options;
  options.restricted_protocols = {"inference,trace:Admin-Key=s=e:c", "health:k=v"};
  options.http_restricted_apis = {"inference:X-Az=web", "metadata:m=n"};
  const AccessPolicy access = AccessPolicy::make(options);
  const std::string header = "triton-grpc-protocol-admin-key";
  for (const CallGroup group : all_groups()) {
    SCOPED_TRACE(to_string(group));
    const bool is_restricted = group == CallGroup::kInference || group == CallGroup::kTrace;
    const Code without = is_restricted || group == CallGroup::kHealth ? Code::PERMISSION_DENIED : Code::OK;
    EXPECT_EQ(code(access, group), without);
    EXPECT_EQ(code(access, group, {{header, "s=e:c"}}),
              group == CallGroup::kHealth ? Code::PERMISSION_DENIED : Code::OK);
    for (const char* wrong : {"", "s", "s=e:", "s=e:c ", "S=e:c", "x=e:c", "s=e:cs=e:c"}) {
      EXPECT_EQ(code(access, group, {{header, wrong}}), without) << wrong;
    }
    EXPECT_EQ(code(access, group, {{"admin-key", "s=e:c"}}), without) << "without the prefix";
    EXPECT_EQ(code(access, group, {{header, "wrong"}, {header, "s=e:c"}}),
              group == CallGroup::kHealth ? Code::PERMISSION_DENIED : Code::OK)
        << "any of them";
  }
  EXPECT_THAT(status(access, CallGroup::kTrace).error_message(), HasSubstr("expecting header '" + header + "'"));
  // HTTP has rules of its own, and falls back to gRPC's for other groups.
  EXPECT_EQ(http(access, CallGroup::kInference), 403);
  EXPECT_EQ(http(access, CallGroup::kInference, {{header, "s=e:c"}}), 403);
  EXPECT_EQ(http(access, CallGroup::kInference, {{"x-az", "web"}}), 200);
  EXPECT_EQ(http(access, CallGroup::kInference, {{"x-az", "wed"}}), 403);
  EXPECT_EQ(http(access, CallGroup::kMetadata), 403);
  EXPECT_EQ(http(access, CallGroup::kMetadata, {{"m", "n"}}), 200);
  EXPECT_EQ(http(access, CallGroup::kTrace), 403);
  EXPECT_EQ(http(access, CallGroup::kTrace, {{header, "s=e:c"}}), 200);
  EXPECT_EQ(http(access, CallGroup::kLogging), 200);
}

// Letters at the ends of the alphabet, and their neighbors.
TEST(AccessPolicy, KeysAreInLowerCase) {
  const auto header_of = [](const char* key) {
    NetworkOptions options;
    options.http_restricted_apis = {concat("trace:", key, "=v")};
    return AccessPolicy::make(options).http_rule(CallGroup::kTrace)->header;
  };
  EXPECT_EQ(header_of("A-Z"), "a-z");
  EXPECT_EQ(header_of("Zz9_@[`{"), "zz9_@[`{");
}

TEST(AccessPolicy, TokensOpenTheirGroups) {
  const TemporaryFolder folder("access");
  const std::string path = (folder.path() / "tokens").string();
  std::ofstream(path) << "inference,metadata user\nall admin\ntrace user2\n";
  NetworkOptions options;
  options.access_tokens = path;
  options.restricted_protocols = {"trace:key=v"};
  const AccessPolicy access = AccessPolicy::make(options);
  const auto bearer = [](const std::string& token) {
    return std::pair<std::string, std::string>("authorization", token);
  };
  for (const CallGroup group : all_groups()) {
    SCOPED_TRACE(to_string(group));
    const bool is_users = group == CallGroup::kInference || group == CallGroup::kMetadata;
    const bool is_health = group == CallGroup::kHealth, is_ruled = group == CallGroup::kTrace;
    const auto expect = [&](const Headers& headers, Code wanted) {
      EXPECT_EQ(code(access, group, headers), is_ruled ? Code::PERMISSION_DENIED : is_health ? Code::OK : wanted);
      const int answer = wanted == Code::OK ? 200 : wanted == Code::UNAUTHENTICATED ? 401 : 403;
      EXPECT_EQ(http(access, group, headers), is_ruled ? 403 : is_health ? 200 : answer);
    };
    EXPECT_EQ(access.needs_token(group), !is_health);
    expect({}, Code::UNAUTHENTICATED);
    for (const char* wrong :
         {"", "user", "admin", "Bearer ", "Bearer use", "Bearer user ", "bearer user", "Bearer x"}) {
      expect({bearer(wrong)}, Code::UNAUTHENTICATED);
    }
    expect({bearer("Bearer admin")}, Code::OK);
    expect({bearer("Bearer user")}, is_users ? Code::OK : Code::PERMISSION_DENIED);
  }
  // If a call has several tokens, the one with the most rights counts.
  const auto two = [&](const char* first, const char* second) {
    return code(access, CallGroup::kLogging, {bearer(first), bearer(second)});
  };
  EXPECT_EQ(two("Bearer x", "Bearer admin"), Code::OK);
  EXPECT_EQ(two("Bearer user", "Bearer admin"), Code::OK);
  EXPECT_EQ(two("Bearer user", "Bearer x"), Code::PERMISSION_DENIED);
  EXPECT_EQ(two("Bearer x", "Bearer user"), Code::PERMISSION_DENIED);
  EXPECT_EQ(two("x", "Bearer x"), Code::UNAUTHENTICATED);
  // A token is required in addition to the rule's header.
  const std::pair<std::string, std::string> key("triton-grpc-protocol-key", "v");
  EXPECT_EQ(code(access, CallGroup::kTrace, {key}), Code::UNAUTHENTICATED);
  EXPECT_EQ(code(access, CallGroup::kTrace, {key, bearer("Bearer user")}), Code::PERMISSION_DENIED);
  EXPECT_EQ(code(access, CallGroup::kTrace, {key, bearer("Bearer user2")}), Code::OK);
  EXPECT_EQ(code(access, CallGroup::kTrace, {bearer("Bearer user2")}), Code::PERMISSION_DENIED);
  EXPECT_THAT(status(access, CallGroup::kTrace, {key, bearer("Bearer user")}).error_message(),
              HasSubstr("calls of 'trace'"));
}

TEST(AccessPolicy, AFolderIsNoFileOfTokens) {
  const TemporaryFolder folder("access");
  NetworkOptions options;
  options.access_tokens = folder.path().string();
  EXPECT_EQ(std::string(error_of([&] { AccessPolicy::make(options); }).what()),
            concat("--access-tokens: cannot read ", options.access_tokens));
}

TEST(Secrets, AreComparedInWhole) {
  EXPECT_TRUE(is_same_secret("", ""));
  EXPECT_TRUE(is_same_secret("abc", "abc"));
  for (const char* wrong : {"", "a", "ab", "abd", "xbc", "axc", "abcabc", "abcd"})
    EXPECT_FALSE(is_same_secret(wrong, "abc")) << wrong;
  EXPECT_FALSE(is_same_secret("a", ""));
  EXPECT_FALSE(is_same_secret(std::string_view("\0", 1), ""));
}

}  // namespace
}  // namespace tensord::server::access_test
