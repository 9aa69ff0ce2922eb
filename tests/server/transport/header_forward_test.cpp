#include "server/transport/grpc/header_forward.h"

#include <grpcpp/test/server_context_test_spouse.h>
#include <gtest/gtest.h>

#include "core/base/error.h"

namespace tensord::server::header_forward_test {
namespace {

ParameterMap forward(const std::string& pattern, const std::multimap<std::string, std::string>& headers,
                     ParameterMap parameters = {}) {
  grpc::ServerContext context;
  grpc::testing::ServerContextTestSpouse spouse(&context);
  for (const auto& [name, value] : headers) spouse.AddClientMetadata(name, value);
  HeaderForward(pattern).add(context, parameters);
  return parameters;
}

TEST(HeaderForward, TakesHeadersWhoseWholeNameMatches) {
  const ParameterMap expected{{"my-key", std::string("1")}, {"my-other", std::string("2")}};
  EXPECT_EQ(forward("my-.*", {{"my-key", "1"}, {"my-other", "2"}, {"not-my-key", "3"}}), expected);
}

TEST(HeaderForward, WithoutAPatternThereAreNone) { EXPECT_TRUE(forward("", {{"my-key", "1"}}).empty()); }

// HTTP headers, one at a time.
TEST(HeaderForward, TakesOneByOneToo) {
  ParameterMap parameters;
  HeaderForward("").add("my-key", "1", parameters);
  EXPECT_TRUE(parameters.empty());
  HeaderForward("my-.*").add("my-key", "1", parameters);
  EXPECT_EQ(parameters.size(), 1u);
}

TEST(HeaderForward, LeavesGrpcsOwnAndWhatIsNoText) {
  EXPECT_TRUE(forward(".*", {{"grpc-timeout", "1"}, {"some-bin", "2"}, {"odd", "\xff"}, {":path", "3"}}).empty());
}

TEST(HeaderForward, TheClientsParametersComeFirst) {
  const ParameterMap own{{"my-key", int64_t{5}}};
  EXPECT_EQ(forward(".*", {{"my-key", "1"}}, own), own);
}

TEST(HeaderForward, RefusesWhatIsNoPattern) { EXPECT_THROW(HeaderForward("(open"), Error); }

}  // namespace
}  // namespace tensord::server::header_forward_test
