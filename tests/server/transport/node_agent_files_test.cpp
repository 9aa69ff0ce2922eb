// Files of a daemon that joins another one: an unreadable file is an error, not treated as absent.
#include <gmock/gmock.h>

#include <fstream>

#include "server/transport/hosts/node_agent.h"
#include "tests/server/error_of.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::node_agent_files_test {
namespace {

TEST(NodeAgentFiles, WhatCannotBeReadIsNamed) {
  const fixtures::TemporaryFolder folder("node_agent");
  std::filesystem::create_symlink(folder.path() / "nothing", folder.path() / "link");
  const std::string large = folder.path() / "large", link = folder.path() / "link", none = folder.path() / "none";
  std::ofstream(large) << std::string((1 << 20) + 1, 'x');
  const std::pair<const char*, std::string JoinOptions::*> flags[] = {{"--join-token-file", &JoinOptions::token_file},
                                                                      {"--join-root-cert", &JoinOptions::root_cert},
                                                                      {"--join-cert", &JoinOptions::cert},
                                                                      {"--join-key", &JoinOptions::key}};
  for (const auto& [flag, member] : flags) {
    for (const std::string& path : {folder.path().string(), link, none, large}) {
      NodeAgent::Options options;
      options.join.address = "127.0.0.1:1";
      options.join.*member = path;
      options.training_folder = folder.path() / "training";
      options.ranks.folder = folder.path() / "ranks";
      const Error error = error_of([&] { NodeAgent node_agent(options); });
      EXPECT_EQ(error.code(), path == large ? ErrorCode::kInvalidArgument : ErrorCode::kNotFound) << flag << path;
      EXPECT_THAT(error.what(), ::testing::HasSubstr(concat(flag, ": ", path))) << error.what();
    }
  }
}

TEST(NodeAgentFiles, ATokenMayBeAsLongAsAFile) {
  const fixtures::TemporaryFolder folder("node_agent");
  NodeAgent::Options options;
  options.join.address = "127.0.0.1:1";
  options.join.token_file = folder.path() / "token";
  std::ofstream(options.join.token_file) << std::string(1 << 20, 'x');
  options.training_folder = folder.path() / "training";
  options.ranks.folder = folder.path() / "ranks";
  EXPECT_NO_THROW(NodeAgent{options});
}

}  // namespace
}  // namespace tensord::server::node_agent_files_test
