// Readiness if one model is broken: of the server, each model and each version, in every API.
#include <gtest/gtest.h>
#include <httplib.h>

#include "protos/health.grpc.pb.h"
#include "tests/server/daemon_fixture.h"

namespace tensord::server::readiness_test {
namespace {

using grpc::health::v1::HealthCheckResponse;

class ReadinessTest : public fixtures::DaemonFixture {
 protected:
  // `half` has a version that serves and one that does not.
  void start_with(bool strict, const std::vector<std::string>& models) {
    for (const std::string& model : models) {
      const std::string config = model == "half" ? "version_policy { all { } }" : "";
      repository_.add(model, 1, model == "broken" ? "nonsense" : "identity", config);
      if (model == "half") repository_.add(model, 2, "nonsense", config);
    }
    ServerOptions options;
    options.strict_readiness = strict;
    options.network.allow_http = true;
    options.network.http_port = 0;
    start(options);
  }

  int http(const std::string& path) const {
    httplib::Client client("127.0.0.1", daemon_->http_port());
    const httplib::Result answer = client.Get(path);
    return answer ? answer->status : 0;
  }
  bool grpc_ready() const {
    grpc::ClientContext context;
    inference::ServerReadyResponse response;
    EXPECT_TRUE(stub_->ServerReady(&context, {}, &response).ok());
    return response.ready();
  }
  bool grpc_live() const {
    grpc::ClientContext context;
    inference::ServerLiveResponse response;
    EXPECT_TRUE(stub_->ServerLive(&context, {}, &response).ok());
    return response.live();
  }
  bool grpc_ready(const std::string& model, const std::string& version) const {
    grpc::ClientContext context;
    inference::ModelReadyRequest request;
    request.set_name(model);
    request.set_version(version);
    inference::ModelReadyResponse response;
    EXPECT_TRUE(stub_->ModelReady(&context, request, &response).ok());
    return response.ready();
  }
  // Asks grpc.health.v1; for an unknown model it returns NOT_FOUND.
  HealthCheckResponse::ServingStatus checked(const std::string& service) const {
    const auto stub = grpc::health::v1::Health::NewStub(channel_);
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
    const grpc::Status status = stub->Check(&context, request, &response);
    return status.ok() ? response.status() : HealthCheckResponse::SERVICE_UNKNOWN;
  }

  void expect_server(bool is_ready) const {
    EXPECT_EQ(http("/v2/health/live"), 200);
    EXPECT_TRUE(grpc_live());
    EXPECT_EQ(http("/v2/health/ready"), is_ready ? 200 : 503);
    EXPECT_EQ(grpc_ready(), is_ready);
    EXPECT_EQ(checked(""), is_ready ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING);
  }
  void expect_model(const std::string& model, bool is_ready) const {
    SCOPED_TRACE(model);
    EXPECT_EQ(http("/v2/models/" + model + "/ready"), is_ready ? 200 : 503);
    EXPECT_EQ(grpc_ready(model, ""), is_ready);
    EXPECT_EQ(checked(model), is_ready ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING);
  }
  void expect_version(const std::string& model, const std::string& version, bool is_ready) const {
    SCOPED_TRACE(model + " " + version);
    EXPECT_EQ(http("/v2/models/" + model + "/versions/" + version + "/ready"), is_ready ? 200 : 503);
    EXPECT_EQ(grpc_ready(model, version), is_ready);
  }
  void expect_models() const {
    expect_model("good", true);
    expect_version("good", "1", true);
    expect_version("good", "2", false);
    expect_model("broken", false);
    expect_version("broken", "1", false);
    expect_model("half", true);
    expect_version("half", "1", true);
    expect_version("half", "2", false);
    EXPECT_EQ(http("/v2/models/nobody/ready"), 503);
    EXPECT_FALSE(grpc_ready("nobody", ""));
    EXPECT_EQ(http("/v2/models/good/versions/v1/ready"), 400);
  }
};

TEST_F(ReadinessTest, StrictABrokenModelIsTheServersAndNoOtherModels) {
  start_with(true, {"good", "broken", "half"});
  expect_server(false);
  expect_models();
}

TEST_F(ReadinessTest, NotStrictABrokenModelIsItsOwnAlone) {
  start_with(false, {"good", "broken", "half"});
  expect_server(true);
  expect_models();
}

TEST_F(ReadinessTest, AllThatIsWellIsReady) {
  start_with(true, {"good"});
  expect_server(true);
  expect_model("good", true);
}

TEST_F(ReadinessTest, ABrokenVersionIsTheServersWhenStrict) {
  start_with(true, {"half"});
  expect_server(false);
  expect_model("half", true);
}

}  // namespace
}  // namespace tensord::server::readiness_test
