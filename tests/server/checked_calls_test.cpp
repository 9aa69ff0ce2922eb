// The arguments of calls other than inference are checked: settings, statistics, health, and a request's parameters.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "protos/health.grpc.pb.h"
#include "protos/inference.grpc.pb.h"
#include "server/config/log_sink.h"
#include "tests/server/daemon_fixture.h"

namespace tensord::server::checked_calls_test {
namespace {

using grpc::StatusCode;

class CheckedCallsTest : public fixtures::DaemonFixture {
 protected:
  void SetUp() override {
    repository_.add("m", 1, "identity");
    start();
  }

  grpc::Status trace(const std::string& name, const std::vector<std::string>& values,
                     inference::TraceSettingResponse* out = nullptr) {
    inference::TraceSettingRequest request;
    auto& setting = (*request.mutable_settings())[name];
    for (const std::string& value : values) setting.add_value(value);
    grpc::ClientContext context;
    inference::TraceSettingResponse response;
    return stub_->TraceSetting(&context, request, out ? out : &response);
  }

  grpc::Status logging(const std::string& name, const inference::LogSettingsRequest::SettingValue& value) {
    inference::LogSettingsRequest request;
    (*request.mutable_settings())[name] = value;
    grpc::ClientContext context;
    inference::LogSettingsResponse response;
    return stub_->LogSettings(&context, request, &response);
  }
};

void expect_refused(const grpc::Status& status, const std::string& message,
                    StatusCode code = StatusCode::INVALID_ARGUMENT) {
  EXPECT_EQ(status.error_code(), code) << status.error_message();
  EXPECT_EQ(status.error_message(), message);
}

TEST_F(CheckedCallsTest, TraceSettingsAreNumbersInTheirBounds) {
  const std::pair<const char*, std::pair<int64_t, int64_t>> bounds[] = {
      {"trace_rate", {0, 4294967295}}, {"trace_count", {-1, 2147483647}}, {"log_frequency", {0, 4294967295}}};
  for (const auto& [name, range] : bounds) {
    for (const int64_t value : {range.first, range.second}) {
      inference::TraceSettingResponse response;
      EXPECT_TRUE(trace(name, {std::to_string(value)}, &response).ok());
      EXPECT_EQ(response.settings().at(name).value(0), std::to_string(value));
    }
    for (const int64_t value : {range.first - 1, range.second + 1}) {
      expect_refused(trace(name, {std::to_string(value)}),
                     concat("Unable to parse '", name, "', value is out of range [ ", range.first, ", ", range.second,
                            " ], got: ", value));
    }
    expect_refused(trace(name, {"99999999999999999999"}),
                   concat("Unable to parse '", name, "', value is out of range [ ", range.first, ", ", range.second,
                          " ], got: 99999999999999999999"));
    for (const char* value : {"", "x", "1x", "1.0"}) {
      expect_refused(trace(name, {value}), concat("Unable to parse '", name, "', got: ", value));
    }
    expect_refused(trace(name, {"1", "1"}), concat("expect only 1 value for '", name, "'"));
    EXPECT_TRUE(trace(name, {}).ok()) << "cleared";
  }
}

TEST_F(CheckedCallsTest, TraceLevelsAndWhatCannotBeChanged) {
  using Levels = std::vector<std::string>;
  for (const Levels& levels :
       {Levels{"TIMESTAMPS"}, Levels{"TENSORS"}, Levels{"TIMESTAMPS", "TENSORS"}, Levels{"OFF"}}) {
    inference::TraceSettingResponse response;
    EXPECT_TRUE(trace("trace_level", levels, &response).ok());
    const auto& out = response.settings().at("trace_level").value();
    EXPECT_EQ(Levels(out.begin(), out.end()), levels);
  }
  expect_refused(trace("trace_level", {"OFF", "TENSORS"}), "Expect only one trace level 'OFF' is specified");
  expect_refused(trace("trace_level", {"TENSORS", "OFF"}), "Expect only one trace level 'OFF' is specified");
  expect_refused(trace("trace_level", {"MAX"}), "trace_level must be OFF, TIMESTAMPS or TENSORS, got 'MAX'");
  expect_refused(trace("trace_file", {"/tmp/x"}), "trace file location can not be updated through network protocol",
                 StatusCode::UNIMPLEMENTED);
  expect_refused(trace("trace_mode", {"triton"}), "trace mode can not be updated through network protocol",
                 StatusCode::UNIMPLEMENTED);
  expect_refused(trace("color", {"1"}), "there is no trace setting 'color'");
}

TEST_F(CheckedCallsTest, LogSettingsHaveTheirTypes) {
  const LogSettings before = log_settings();
  inference::LogSettingsRequest::SettingValue flag, number, text;
  flag.set_bool_param(true);
  number.set_uint32_param(1);
  text.set_string_param("ISO8601");
  for (const char* name : {"log_info", "log_warning", "log_error"}) {
    for (const auto& value : {number, text}) {
      expect_refused(logging(name, value), concat("expect boolean for '", name, "'"));
    }
    EXPECT_TRUE(logging(name, flag).ok());
  }
  for (const auto& value : {flag, text}) {
    expect_refused(logging("log_verbose_level", value), "expect int32 for 'log_verbose_level'");
  }
  for (const auto& value : {flag, number}) {
    expect_refused(logging("log_format", value), "expect string for 'log_format'");
  }
  EXPECT_TRUE(logging("log_format", text).ok());
  text.set_string_param("colorful");
  expect_refused(logging("log_format", text), "invalid argument for log_format, got: colorful");
  EXPECT_EQ(log_settings().format, "ISO8601");
  expect_refused(logging("log_file", text), "log file location can not be updated through network protocol",
                 StatusCode::UNIMPLEMENTED);
  expect_refused(logging("color", text), "there is no log setting 'color'");
  change_log_settings([&](LogSettings& settings) { settings = before; });
}

TEST_F(CheckedCallsTest, StatisticsAndHealthAreOfModelsThatAreThere) {
  const auto statistics = [&](const std::string& name, const std::string& version) {
    inference::ModelStatisticsRequest request;
    request.set_name(name);
    request.set_version(version);
    grpc::ClientContext context;
    inference::ModelStatisticsResponse response;
    const grpc::Status status = stub_->ModelStatistics(&context, request, &response);
    return std::pair(status, response.model_stats_size());
  };
  EXPECT_EQ(statistics("m", "1").second, 1);
  EXPECT_EQ(statistics("m", "").second, 1);
  EXPECT_EQ(statistics("", "").second, 1);
  expect_refused(statistics("", "1").first, "ModelStatistics for a version needs the name of the model");
  const grpc::Status missing = statistics("m", "2").first;
  EXPECT_EQ(missing.error_message().find("requested model version is not available for model 'm': "), 0u);
  EXPECT_EQ(missing.error_code(), StatusCode::NOT_FOUND);
  EXPECT_FALSE(statistics("n", "").first.ok());

  const auto health = grpc::health::v1::Health::NewStub(channel_);
  const auto check_of = [&](const std::string& service) {
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckResponse response;
    return health->Check(&context, request, &response);
  };
  EXPECT_TRUE(check_of("m").ok());
  expect_refused(check_of("nope"), "no service or model 'nope'", StatusCode::NOT_FOUND);
}

inference::InferParameter number_of(int64_t value) {
  inference::InferParameter out;
  out.set_int64_param(value);
  return out;
}

inference::InferParameter text_of(const std::string& value) {
  inference::InferParameter out;
  out.set_string_param(value);
  return out;
}

inference::InferParameter flag_of(bool value) {
  inference::InferParameter out;
  out.set_bool_param(value);
  return out;
}

TEST_F(CheckedCallsTest, ParametersOfRequestsHaveTheirTypesAndBounds) {
  inference::ModelInferResponse response;
  const auto with = [&](const std::string& name, const inference::InferParameter& value) {
    inference::ModelInferRequest message = request("m", "abc");
    (*message.mutable_parameters())[name] = value;
    return infer(message, &response);
  };
  for (const char* name : {"sequence_start", "sequence_end", "triton_enable_empty_final_response"}) {
    for (const auto& value : {number_of(1), text_of("true")}) {
      expect_refused(with(name, value), concat("invalid value type for '", name, "' parameter, expected bool_param."));
    }
  }
  EXPECT_TRUE(with("timeout", number_of(0)).ok());
  EXPECT_TRUE(with("priority", number_of(0)).ok());
  expect_refused(with("timeout", number_of(-1)), "invalid value for 'timeout', expected value >= 0.");
  expect_refused(with("priority", number_of(-1)), "invalid value for 'priority', expected value >= 0.");
  expect_refused(with("timeout", text_of("1")), "invalid value type for 'timeout' parameter, expected int64_param.");
  expect_refused(with("priority", text_of("1")),
                 "invalid value type for 'priority' parameter, expected int64_param or uint64_param.");
  expect_refused(with("sequence_id", flag_of(true)),
                 "invalid value type for 'sequence_id' parameter, expected int64_param or string_param.");
  EXPECT_EQ(with("triton_x", number_of(1)).error_message().find("parameter keys starting with 'triton_' are reserved"),
            0u);
  for (const char* name : {"headers", "binary_data_output"}) EXPECT_TRUE(with(name, {}).ok()) << "KServe's client";
  EXPECT_EQ(with("mine", {}).error_message().find("invalid value type for 'mine' parameter"), 0u);
  EXPECT_TRUE(with("mine", number_of(1)).ok());
}

TEST_F(CheckedCallsTest, PlacesInSharedMemoryAreWhole) {
  using Parameters = std::map<std::string, inference::InferParameter>;
  inference::ModelInferResponse response;
  const auto fill = [](const Parameters& parameters, auto& tensor) {
    for (const auto& [name, value] : parameters) (*tensor.mutable_parameters())[name] = value;
  };
  const auto both = [&](const Parameters& parameters, const std::string& message) {
    inference::ModelInferRequest of_input = request("m", "abc"), of_output = request("m", "abc");
    fill(parameters, *of_input.mutable_inputs(0));
    of_output.add_outputs()->set_name("OUTPUT__0");
    fill(parameters, *of_output.mutable_outputs(0));
    EXPECT_EQ(infer(of_input, &response).error_message(),
              concat(message.substr(0, message.find('@')), "x", message.substr(message.find('@') + 1)));
    EXPECT_EQ(infer(of_output, &response).error_message(),
              concat(message.substr(0, message.find('@')), "OUTPUT__0", message.substr(message.find('@') + 1)));
  };
  const char* const needs =
      "'shared_memory_offset' and 'shared_memory_byte_size' of '@' need the parameter "
      "'shared_memory_region'";
  both({{"shared_memory_offset", number_of(0)}}, needs);
  both({{"shared_memory_byte_size", number_of(0)}}, needs);
  both({{"shared_memory_region", text_of("r")}},
       "'shared_memory_byte_size' parameter must be specified for '@', with 'shared_memory_region'");
  both({{"shared_memory_region", text_of("")}, {"shared_memory_byte_size", number_of(3)}},
       "'shared_memory_region' of '@' must not be empty");
  for (const char* name : {"shared_memory_offset", "shared_memory_byte_size"}) {
    both({{name, number_of(-1)}}, concat("invalid value for '", name, "' parameter of '@', expected value >= 0."));
  }
  inference::ModelInferRequest message = request("m", "abc");
  message.add_outputs()->set_name("OUTPUT__0");
  auto& classes = (*message.mutable_outputs(0)->mutable_parameters())["classification"];
  classes = number_of(0);
  expect_refused(infer(message, &response),
                 "invalid value for 'classification' parameter of 'OUTPUT__0', expected value >= 1.");
  classes = text_of("1");
  expect_refused(infer(message, &response), "invalid value type for 'classification' parameter, expected int64_param.");
}

}  // namespace
}  // namespace tensord::server::checked_calls_test
