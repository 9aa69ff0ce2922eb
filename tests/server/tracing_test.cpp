#include "server/tracing/tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "server/executor/requests/trace_tensors.h"

namespace tensord::server::tracing_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class TraceFiles : public ::testing::Test {
 protected:
  TraceFiles() : folder_(std::filesystem::temp_directory_path() / ("traces" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~TraceFiles() override { std::filesystem::remove_all(folder_); }

  TraceOptions options(uint32_t rate, int32_t count = -1, uint32_t log_frequency = 0) const {
    TraceOptions out;
    out.file = (folder_ / "trace.json").string();
    out.settings = {.has_timestamps = true, .rate = rate, .count = count, .log_frequency = log_frequency};
    return out;
  }
  Json read(const std::string& name) const { return Json::parse(std::ifstream(folder_ / name)); }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  const std::filesystem::path folder_;
};

RequestTimes some_times() {
  return {.arrived_ns = 1000,
          .queue_start_ns = 2000,
          .compute_start_ns = 3000,
          .compute_input_end_ns = 4000,
          .compute_output_start_ns = 5000,
          .compute_end_ns = 6000};
}

// Which of the requests 1, 2, 3 … are traced.
std::vector<int> traced(Tracer& tracer, const std::string& model, int requests) {
  std::vector<int> out;
  for (int i = 1; i <= requests; ++i) {
    if (tracer.start({.model = model, .version = "1", .arrived_ns = 1})) out.push_back(i);
  }
  return out;
}

std::vector<std::string> names_of(const Json& timestamps) {
  std::vector<std::string> out;
  for (const Json& stamp : timestamps) out.push_back(stamp["name"]);
  return out;
}

TEST_F(TraceFiles, RateAndCount) {
  Tracer tracer(options(3, 2));
  EXPECT_THAT(traced(tracer, "m", 12), ElementsAre(3, 6));
  EXPECT_EQ(tracer.settings("").count, 0);
  TraceChanges more;
  more.count.emplace(-1);
  tracer.change("", more);
  EXPECT_THAT(traced(tracer, "m", 6), ElementsAre(3, 6));
  tracer.stop();
  EXPECT_TRUE(traced(tracer, "m", 6).empty());
}

TEST_F(TraceFiles, ModelsHaveSettingsOfTheirOwn) {
  Tracer tracer(options(1000));
  TraceChanges changes;
  changes.rate.emplace(2);
  tracer.change("mine", changes);
  EXPECT_THAT(traced(tracer, "mine", 4), ElementsAre(2, 4));
  EXPECT_TRUE(traced(tracer, "other", 4).empty());
  TraceChanges off;
  off.levels.emplace(TraceChanges::Levels{});
  tracer.change("", off);
  EXPECT_FALSE(tracer.settings("mine").is_on()) << "what the model does not say is the server's";
  off.levels.emplace(std::nullopt);
  tracer.change("", off);
  EXPECT_TRUE(tracer.settings("mine").is_on()) << "cleared: as at the start";
  changes.rate.emplace(std::nullopt);
  tracer.change("mine", changes);
  EXPECT_EQ(tracer.settings("mine").rate, 1000u);
}

TEST_F(TraceFiles, FormOfTheFile) {
  {
    Tracer tracer(options(1));
    const auto trace =
        tracer.start({.model = "m", .version = "7", .request_id = "abc\xff", .read_start_ns = 500, .arrived_ns = 900});
    ASSERT_TRUE(trace);
    const auto step = trace->make_step("inner", "2");
    step->record_answer(some_times(), 0, "");
    trace->record_answer(some_times(), 0, "");
    const int64_t now_ns = Clock::system().now_ns();
    trace->record_sent(now_ns, now_ns + 10);
  }
  const Json json = read("trace.json");
  ASSERT_EQ(json.size(), 4u);
  std::map<std::string, Json> heads;
  std::map<uint64_t, Json> stamps;
  for (const Json& part : json) {
    if (part.contains("model_name")) heads[part["model_name"]] = part;
    if (part.contains("timestamps")) stamps[part["id"]] = part["timestamps"];
  }
  EXPECT_EQ(heads["m"]["model_version"], 7);
  EXPECT_EQ(heads["m"]["request_id"], "abc\xef\xbf\xbd") << "ids that are not UTF-8 do not break the file";
  EXPECT_EQ(heads["inner"]["parent_id"], heads["m"]["id"]);
  EXPECT_THAT(names_of(stamps[heads["m"]["id"]]),
              ElementsAre("GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "REQUEST_START", "QUEUE_START", "COMPUTE_START",
                          "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END", "INFER_RESPONSE_COMPLETE",
                          "REQUEST_END", "GRPC_SEND_START", "GRPC_SEND_END"));
  EXPECT_EQ(stamps[heads["m"]["id"]][4]["ns"], 3000);
}

// The last bytes of a file are written on close: a failure there is reported too.
TEST_F(TraceFiles, AFullDiskIsSaid) {
  static std::vector<std::string> said;
  said.clear();
  set_log_sink(
      [](LogLevel, std::string_view message, std::initializer_list<LogField> fields, const std::source_location&) {
        said.push_back(std::string(message));
        for (const LogField& field : fields) said.back() += " " + std::string(field.value);
      });
  std::filesystem::create_symlink("/dev/full", folder_ / "trace.json.0");
  {
    Tracer tracer(options(1, -1, 1));
    for (int i = 0; i < 2; ++i) {
      tracer.start({.model = "m", .version = "1", .arrived_ns = 1})->record_answer(some_times(), 0, "");
    }
  }
  EXPECT_THAT(said, ElementsAre("traces cannot be written " + (folder_ / "trace.json.0").string() +
                                " No space left on device"));
  EXPECT_EQ(read("trace.json.1").size(), 2u) << "the next one is written";
}

TEST_F(TraceFiles, TensorsWhenWanted) {
  TraceOptions wanted = options(1);
  wanted.settings.has_timestamps = false;
  wanted.settings.has_tensors = true;
  {
    Tracer tracer(wanted);
    const auto trace = tracer.start({.model = "m", .version = "1", .arrived_ns = 1});
    ASSERT_TRUE(trace && trace->wants_tensors());
    trace->add_tensor(TensorActivity::kInput, "x", "FP32", "1,2", "0.5,1");
    trace->record_answer(some_times(), 0, "");
  }
  const Json json = read("trace.json");
  ASSERT_EQ(json.size(), 2u) << "no timestamps";
  EXPECT_EQ(json[1]["activity"], "TENSOR_QUEUE_INPUT");
  EXPECT_EQ(json[1]["tensor"]["data"], "0.5,1");
}

InferTensor tensor_of(const std::string& name, Dims shape, DType dtype) {
  InferTensor out;
  out.name = name;
  out.datatype = from_dtype(dtype);
  out.shape = std::move(shape);
  out.tensor = Tensor::empty(out.shape, dtype);
  return out;
}

TEST_F(TraceFiles, TextsOfTensors) {
  std::vector<InferTensor> tensors;
  tensors.push_back(tensor_of("floats", {2, 2}, DType::kFloat32));
  for (int64_t i = 0; i < 4; ++i) tensors.back().tensor.data<float>()[i] = 0.5f - static_cast<float>(i);
  tensors.push_back(tensor_of("longs", {2}, DType::kInt64));
  tensors.back().tensor.data<int64_t>()[0] = -7;
  tensors.back().tensor.data<int64_t>()[1] = 9'007'199'254'740'993;
  tensors.push_back(tensor_of("scalar", {}, DType::kInt32));
  *tensors.back().tensor.data<int32_t>() = 3;
  tensors.push_back(tensor_of("nothing", {0, 3}, DType::kFloat32));
  InferTensor pieces = tensor_of("pieces", {4}, DType::kUInt8);
  const uint8_t bytes[] = {1, 2, 3, 4};
  ScatteredBytes scattered;
  scattered.pieces = {{bytes, 1}, {bytes + 1, 3}};
  pieces.scattered = std::make_shared<const ScatteredBytes>(scattered);
  tensors.push_back(pieces);
  InferTensor words;
  words.name = "words";
  words.datatype = DataType::kBytes;
  words.shape = {3};
  words.strings = {"a", "", "bc"};
  tensors.push_back(words);
  tensors.push_back(tensor_of("large", {5000}, DType::kUInt8));
  std::memset(tensors.back().tensor.raw_data(), 1, 5000);
  InferTensor many = tensor_of("many pieces", {4097 + (16 << 20)}, DType::kUInt8);
  const std::vector<uint8_t> ones(16 << 20, 1);
  ScatteredBytes long_pieces;
  long_pieces.pieces = {{ones.data(), 4097}, {ones.data(), ones.size()}};
  many.scattered = std::make_shared<const ScatteredBytes>(long_pieces);
  tensors.push_back(many);
  for (const size_t size : {65535, 65536}) {
    words.name = concat("long words ", size);
    words.strings = {std::string(size, 'a'), "b"};
    tensors.push_back(words);
  }

  TraceOptions wanted = options(1);
  wanted.settings.has_timestamps = false;
  wanted.settings.has_tensors = true;
  {
    Tracer tracer(wanted);
    trace_tensors(*tracer.start({.model = "m", .version = "1", .arrived_ns = 1}), TensorActivity::kOutput, tensors);
  }
  std::map<std::string, std::pair<std::string, std::string>> seen;
  for (const Json& part : read("trace.json")) {
    if (!part.contains("tensor")) continue;
    EXPECT_EQ(part["activity"], "TENSOR_BACKEND_OUTPUT");
    seen[part["tensor"]["name"]] = {part["tensor"]["shape"], part["tensor"]["data"]};
  }
  using Texts = std::pair<std::string, std::string>;
  EXPECT_EQ(seen["floats"], Texts("2,2", "0.5,-0.5,-1.5,-2.5"));
  EXPECT_EQ(seen["longs"], Texts("2", "-7,9007199254740993"));
  EXPECT_EQ(seen["many pieces"].second, seen["large"].second);
  EXPECT_EQ(seen["long words 65535"].second, std::string(65535, 'a') + ",b");
  EXPECT_EQ(seen["long words 65536"].second, std::string(65536, 'a'));
  EXPECT_EQ(seen["scalar"], Texts("", "3"));
  EXPECT_EQ(seen["nothing"], Texts("0,3", ""));
  EXPECT_EQ(seen["pieces"], Texts("4", "1,2,3,4"));
  EXPECT_EQ(seen["words"], Texts("3", "a,,bc"));
  EXPECT_EQ(seen["large"].second.size(), 2u * 4096 - 1) << "the first elements";
}

TEST_F(TraceFiles, LogFrequencyMakesFiles) {
  {
    Tracer tracer(options(1, -1, 2));
    for (int i = 0; i < 5; ++i) tracer.start({.model = "m", .version = "1", .arrived_ns = 1});
    tracer.stop();
  }
  EXPECT_EQ(read("trace.json").size(), 0u);
  EXPECT_EQ(read("trace.json.0").size(), 4u) << "two traces of a head and a list of times";
  EXPECT_EQ(read("trace.json.1").size(), 4u);
  EXPECT_EQ(read("trace.json.2").size(), 2u) << "what was left at the end";
  EXPECT_FALSE(exists("trace.json.3"));
}

TEST_F(TraceFiles, NoFileNoTraces) {
  TraceOptions nowhere = options(1);
  nowhere.file.clear();
  Tracer tracer(nowhere);
  EXPECT_FALSE(tracer.is_on());
  nowhere.file = (folder_ / "missing" / "trace.json").string();
  EXPECT_THROW(Tracer{nowhere}, Error);
}

TEST(TraceParent, IsReadAsW3CWritesIt) {
  const std::string id = "4bf92f3577b34da6a3ce929d0e0e4736", span = "00f067aa0ba902b7";
  const TraceContext context = parse_traceparent("00-" + id + "-" + span + "-01");
  EXPECT_EQ(context.trace_id[0], 0x4b);
  EXPECT_EQ(context.span_id[7], 0xb7);
  EXPECT_TRUE(context.is_sampled);
  EXPECT_FALSE(parse_traceparent("00-" + id + "-" + span + "-00").is_sampled);
  EXPECT_FALSE(parse_traceparent("01-" + id + "-" + span + "-01-more").is_none()) << "later versions may say more";
  for (const std::string& bad :
       {std::string(), "00-" + id + "-" + span, "00-" + id + "-" + span + "-01-more", "ff-" + id + "-" + span + "-01",
        "00-" + std::string(32, '0') + "-" + span + "-01", "00-" + id + "-" + std::string(16, '0') + "-01",
        "00-" + std::string(32, 'G') + "-" + span + "-01", "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + span + "-01",
        std::string(10000, '-')}) {
    EXPECT_TRUE(parse_traceparent(bad).is_none()) << bad.substr(0, 80);
  }
}

TEST(TraceOptions, AreTritonsFlags) {
  TraceOptions options;
  for (const char* text : {"mode=opentelemetry", "level=TIMESTAMPS", "rate=7", "count=9", "triton,file=/tmp/x=y,z",
                           "triton,log-frequency=50", "opentelemetry,url=http://collector:4318/v1/traces",
                           "opentelemetry,resource=service.name=mine", "opentelemetry,bsp_schedule_delay=100"}) {
    parse_trace_option(text, options);
  }
  EXPECT_EQ(options.mode, TraceOptions::Mode::kOpenTelemetry);
  EXPECT_TRUE(options.settings.has_timestamps);
  EXPECT_EQ(options.settings.rate, 7u);
  EXPECT_EQ(options.settings.count, 9);
  EXPECT_EQ(options.settings.log_frequency, 50u);
  EXPECT_EQ(options.file, "/tmp/x=y,z");
  EXPECT_EQ(options.resource["service.name"], "mine");
  EXPECT_EQ(options.schedule_delay_ms, 100u);
  for (const char* bad :
       {"", "rate", "rate=", "rate=x", "rate=-1", "count=-2", "level=ALL", "mode=zipkin", "what=1",
        "zipkin,url=http://x", "triton,url=http://x", "opentelemetry,file=x", "opentelemetry,url=https://x",
        "opentelemetry,resource=novalue", "rate=99999999999999999999"}) {
    EXPECT_THROW(parse_trace_option(bad, options), Error) << bad;
  }
}

}  // namespace
}  // namespace tensord::server::tracing_test
