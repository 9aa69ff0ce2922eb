// The log line for the end of a host's stream, whatever reason the other daemon gives.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>

#include "core/base/log.h"
#include "protos/hosts.grpc.pb.h"
#include "server/transport/hosts/node_agent.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::node_agent_stream_test {
namespace {

using ::testing::HasSubstr;
namespace rpc = hosts::v1;

std::mutex log_mutex;
std::condition_variable log_changed;
std::multiset<std::string> reasons;

void note_reason(LogLevel, std::string_view, std::initializer_list<LogField> fields, const std::source_location&) {
  const std::lock_guard lock(log_mutex);
  for (const LogField& field : fields) {
    if (field.key == "reason") reasons.insert(field.value);
  }
  log_changed.notify_all();
}

// Ends each stream at once, the first without a reason and the next with one.
class Service final : public rpc::HostService::Service {
  grpc::Status Join(grpc::ServerContext*, grpc::ServerReaderWriter<rpc::HostOrder, rpc::HostReport>*) override {
    const bool is_first = !was_called_.exchange(true);
    return is_first ? grpc::Status::OK : grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "no host is wanted");
  }
  std::atomic<bool> was_called_{false};
};

TEST(NodeAgentStream, ItsEndHasAReason) {
  set_log_sink(note_reason);
  Service service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.RegisterService(&service).AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const fixtures::TemporaryFolder folder("node_agent");
  NodeAgent::Options options;
  options.join.address = "127.0.0.1:" + std::to_string(port);
  options.training_folder = folder.path() / "training";
  options.ranks.folder = folder.path() / "ranks";
  NodeAgent node_agent(options);
  {
    std::unique_lock lock(log_mutex);
    const auto is_said = [] { return reasons.size() >= 2; };
    ASSERT_TRUE(log_changed.wait_for(lock, std::chrono::seconds(200), is_said));
    EXPECT_THAT(reasons, ::testing::Contains(HasSubstr("the stream has ended")));
    EXPECT_THAT(reasons, ::testing::Contains(HasSubstr("no host is wanted")));
  }
  node_agent.stop();
  server->Shutdown();
}

}  // namespace
}  // namespace tensord::server::node_agent_stream_test
