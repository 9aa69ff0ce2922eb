// The C++ client against real daemons, which tests/e2e/cpp_client_test.py starts and passes in the environment.
#include <gtest/gtest.h>
#include <tensord/client/client.h>
#include <tensord/client/shared_memory.h>
#include <tensord/client/stream.h>
#include <tensord/client/training.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <numeric>
#include <thread>

namespace tensord::client {
namespace {

using std::chrono::milliseconds;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string(name) + " is not set");
  return value;
}

Client& daemon() {
  static Client client(environment("TENSORD_ADDRESS"));
  return client;
}

std::vector<int32_t> values_of(const Tensor& tensor) {
  const auto values = tensor.values<int32_t>();
  return {values.begin(), values.end()};
}

Tensor counted(int32_t first, int64_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return Tensor::take(std::move(values), {1, count});
}

template <class E, class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another error: " << error.what();
    return {};
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(ClientInfer, NamesInputsByPosition) {
  const Result result = daemon().infer("simple", {counted(0, 16), counted(100, 16)});
  EXPECT_EQ(result.model, "simple");
  EXPECT_EQ(result.version, "1");
  EXPECT_EQ(result.outputs.size(), 2u);
  EXPECT_EQ(result.output("OUTPUT0").shape(), (std::vector<int64_t>{1, 16}));
  EXPECT_EQ(values_of(result.output("OUTPUT0"))[3], 106);
  EXPECT_EQ(values_of(result.output("OUTPUT1"))[3], -100);
  EXPECT_TRUE(result.is_final());
  EXPECT_NE(error_of<NotFoundError>([&] { result.output("OUTPUT2"); }).find("OUTPUT2"), std::string::npos);
  EXPECT_NE(error_of<FailedPreconditionError>([&] { result.output(); }).find("2 outputs"), std::string::npos);
}

TEST(ClientInfer, AsksForOutputsAndKeepsTheId) {
  Request request{.model = "simple", .inputs = {{"INPUT1", counted(1, 16)}, {"INPUT0", counted(5, 16)}}};
  request.outputs = {{.name = "OUTPUT1"}};
  request.id = "seven";
  request.priority = 1;
  const Result result = daemon().infer(request);
  EXPECT_EQ(result.id, "seven");
  ASSERT_EQ(result.outputs.size(), 1u);
  EXPECT_EQ(values_of(result.output())[0], 4);
}

TEST(ClientInfer, ManyAtOnce) {
  std::vector<std::future<Result>> results;
  for (int i = 0; i < 50; ++i) {
    results.push_back(
        daemon().infer_async({.model = "simple", .inputs = {{"INPUT0", counted(i, 16)}, {"INPUT1", counted(1, 16)}}}));
  }
  for (int i = 0; i < 50; ++i) EXPECT_EQ(values_of(results[static_cast<size_t>(i)].get().output("OUTPUT0"))[0], i + 1);
  auto failed = daemon().infer_async({.model = "nobody", .inputs = {{"x", counted(0, 4)}}});
  EXPECT_NE(error_of<NotFoundError>([&] { failed.get(); }).find("nobody"), std::string::npos);
}

// In a process of its own, where no other client keeps gRPC's threads alive.
TEST(ClientInferDeathTest, TheLastClientMayGoInItsAnswer) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    for (int i = 0; i < 20; ++i) {
      auto client = std::make_shared<Client>(environment("TENSORD_ADDRESS"));
      Client& called = *client;
      const auto gone = std::make_shared<std::promise<void>>();
      called.infer_async({.model = "simple", .inputs = {{"INPUT0", counted(i, 16)}, {"INPUT1", counted(1, 16)}}},
                         [gone, client = std::move(client)](std::exception_ptr, Result) mutable {
                           client.reset();
                           gone->set_value();
                         });
      gone->get_future().get();
    }
    std::exit(0);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}

TEST(ClientInfer, LargeTensorsAreNotCopied) {
  constexpr int64_t kRows = 1024;
  std::vector<float> values(kRows * kRows);
  std::iota(values.begin(), values.end(), 0.5f);
  std::atomic<bool> is_released{false};
  {
    const std::shared_ptr<const void> memory(values.data(), [&](const void*) { is_released = true; });
    Tensor input = Tensor::share(DataType::kFp32, {kRows, kRows}, memory, values.size() * sizeof(float));
    const Result result = daemon().infer("identity_fp32", {input});
    EXPECT_EQ(input.bytes().data(), reinterpret_cast<const std::byte*>(values.data()));
    EXPECT_TRUE(std::ranges::equal(result.output().values<float>(), values));
    EXPECT_FALSE(is_released);
  }
  // gRPC has released it: the response arrived after all of it was sent.
  for (int i = 0; i < 200 && !is_released; ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_TRUE(is_released);
}

TEST(ClientInfer, Strings) {
  std::vector<std::string> numbers(16, "7"), others(16, "-12");
  const Result result =
      daemon().infer("simple_string", {Tensor::strings(numbers, {1, 16}), Tensor::strings(others, {1, 16})});
  EXPECT_EQ(result.output("OUTPUT0").strings(), std::vector<std::string>(16, "-5"));
  EXPECT_EQ(result.output("OUTPUT0").type(), DataType::kBytes);
}

TEST(ClientInfer, Classes) {
  Request request{.model = "labelled_identity", .inputs = {{"", Tensor::take<float>({1, 9, 3, 4}, {1, 4})}}};
  request.outputs = {{.name = daemon().model_metadata("labelled_identity").outputs.at(0).name, .classes = 2}};
  const std::vector<std::string> classes = daemon().infer(request).output().strings();
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_TRUE(classes[0].ends_with(":1:banana")) << classes[0];
}

TEST(ClientInfer, ErrorsHaveTheirKind) {
  EXPECT_NE(error_of<InvalidArgumentError>([] {
              daemon().infer({.model = "simple", .inputs = {{"INPUT0", counted(0, 16)}, {"wrong", counted(0, 16)}}});
            }).find("wrong"),
            std::string::npos);
  error_of<InvalidArgumentError>([] { daemon().infer("simple", {counted(0, 16), counted(0, 16), counted(0, 16)}); });
  error_of<InvalidArgumentError>([] { Tensor::take<float>({1, 2, 3}, {2, 2}); });
  error_of<InvalidArgumentError>([] { counted(0, 4).values<float>(); });
  try {
    daemon().infer("nobody", {counted(0, 4)});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kNotFound);
    EXPECT_FALSE(error.is_transient());
  }
}

TEST(ClientInfer, Deadlines) {
  // Nothing listens on that port, and the call waits for a connection.
  Client nobody("127.0.0.1:1", {.timeout = milliseconds(200), .wait_for_ready = true});
  error_of<DeadlineExceededError>([&] { nobody.infer({.model = "simple", .inputs = {{"x", counted(0, 4)}}}); });
  EXPECT_FALSE(nobody.is_live());
  EXPECT_FALSE(nobody.is_ready());
  // The call's own deadline, since the client has none.
  Client patient("127.0.0.1:1", {.wait_for_ready = true});
  error_of<DeadlineExceededError>([&] {
    patient.infer({.model = "simple", .inputs = {{"x", counted(0, 4)}}}, {.timeout = milliseconds(100)});
  });
  error_of<DeadlineExceededError>([&] { nobody.wait_until_ready(milliseconds(150)); });
}

TEST(ClientStream, DecoupledResponses) {
  Stream stream = daemon().open_stream();
  for (const int count : {3, 0, 2}) {
    std::vector<int32_t> values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), 10 * count);
    const std::vector<uint32_t> zeros(values.size());
    stream.send({.model = "repeat_int32",
                 .inputs = {{"IN", Tensor::take(std::move(values), {count})},
                            {"DELAY", Tensor::copy<uint32_t>(zeros, {count})},
                            {"WAIT", Tensor::take<uint32_t>({0}, {1})}},
                 .id = std::to_string(count),
                 .wants_final_response = true});
    std::vector<int32_t> answers;
    while (true) {
      const auto answer = stream.receive();
      ASSERT_TRUE(answer && answer->is_ok());
      EXPECT_EQ(answer->result.id, std::to_string(count));
      for (const auto& output : answer->result.outputs) {
        if (output.name == "OUT") answers.push_back(values_of(output.tensor)[0]);
      }
      if (answer->result.is_final()) break;
    }
    std::vector<int32_t> wanted(static_cast<size_t>(count));
    std::iota(wanted.begin(), wanted.end(), 10 * count);
    EXPECT_EQ(answers, wanted);
  }
  stream.finish_sending();
  EXPECT_FALSE(stream.receive().has_value());
  error_of<FailedPreconditionError>([&] { stream.send({.model = "simple", .inputs = {}}); });
}

TEST(ClientStream, SequencesAndErrors) {
  Stream stream = daemon().open_stream();
  for (int i = 0; i < 3; ++i) {
    Request request{.model = "simple_sequence", .inputs = {{"INPUT", Tensor::take<int32_t>({10 * i}, {1, 1})}}};
    request.sequence = {.id = uint64_t{4711}, .is_start = i == 0, .is_end = i == 2};
    stream.send(request);
  }
  for (const int wanted : {1, 10, 20}) {
    const auto answer = stream.receive();
    ASSERT_TRUE(answer && answer->is_ok()) << answer->error;
    EXPECT_EQ(values_of(answer->result.output())[0], wanted);
  }
  stream.send({.model = "nobody", .inputs = {{"x", counted(0, 4)}}, .id = "lost"});
  const auto answer = stream.receive();
  ASSERT_TRUE(answer);
  EXPECT_NE(answer->error.find("nobody"), std::string::npos);
  EXPECT_EQ(answer->result.id, "lost");
  stream.cancel();
  error_of<CancelledError>([&] { stream.receive(); });
}

TEST(ClientStream, MayBeLeftWithAnswersOnTheirWay) {
  for (int i = 0; i < 20; ++i) {
    Stream stream = daemon().open_stream();
    // More than the client reads ahead.
    for (int j = 0; j < 40; ++j) {
      stream.send({.model = "simple", .inputs = {{"INPUT0", counted(j, 16)}, {"INPUT1", counted(j, 16)}}});
    }
    if (i % 2 == 0) {
      ASSERT_TRUE(stream.receive());
    }
  }
  EXPECT_TRUE(daemon().is_live());
}

TEST(ClientStream, ReadsAllOfManyAnswers) {
  Stream stream = daemon().open_stream();
  constexpr int kCount = 300;
  std::thread sender([&] {
    for (int i = 0; i < kCount; ++i) {
      stream.send({.model = "simple", .inputs = {{"INPUT0", counted(i, 16)}, {"INPUT1", counted(0, 16)}}});
    }
    stream.finish_sending();
  });
  int received = 0;
  while (const auto answer = stream.receive()) {
    EXPECT_EQ(values_of(answer->result.output("OUTPUT0"))[0], received);
    ++received;
  }
  EXPECT_EQ(received, kCount);
  sender.join();
}

TEST(ClientSharedMemory, InputsAndOutputs) {
  constexpr size_t kBytes = 16 * sizeof(int32_t);
  std::string name;
  {
    SharedMemory memory(daemon(), 4 * kBytes);
    name = memory.name();
    EXPECT_EQ(daemon().shared_memory().size(), 1u);
    for (size_t i = 0; i < 16; ++i) {
      memory.values<int32_t>(0, 16)[i] = static_cast<int32_t>(i);
      memory.values<int32_t>(kBytes, 16)[i] = 1000;
    }
    Request request{.model = "simple",
                    .inputs = {{"INPUT0", memory.tensor(DataType::kInt32, {1, 16})},
                               {"INPUT1", memory.tensor(DataType::kInt32, {1, 16}, kBytes)}}};
    request.outputs = {{.name = "OUTPUT0", .into = memory.tensor(DataType::kInt32, {1, 16}, 2 * kBytes)},
                       {.name = "OUTPUT1"}};
    const Result result = daemon().infer(request);
    EXPECT_EQ(result.output("OUTPUT0").bytes().data(), memory.bytes().data() + 2 * kBytes);
    EXPECT_EQ(memory.values<int32_t>(2 * kBytes, 16)[5], 1005);
    EXPECT_EQ(values_of(result.output("OUTPUT0"))[5], 1005);
    EXPECT_EQ(values_of(result.output("OUTPUT1"))[5], -995);

    request.id = "on a stream";
    request.outputs[0].into = memory.tensor(DataType::kInt32, {1, 16}, 3 * kBytes);
    Stream stream = daemon().open_stream();
    stream.send(request);
    const auto answer = stream.receive();
    ASSERT_TRUE(answer && answer->is_ok());
    EXPECT_EQ(answer->result.output("OUTPUT0").bytes().data(), memory.bytes().data() + 3 * kBytes);
    EXPECT_EQ(memory.values<int32_t>(3 * kBytes, 16)[0], 1000);
    error_of<InvalidArgumentError>([&] { memory.tensor(DataType::kInt32, {1, 16}, 4 * kBytes - 4); });
    error_of<InvalidArgumentError>([&] { memory.tensor(DataType::kInt32, {1, 4}, 2); });
  }
  EXPECT_TRUE(daemon().shared_memory().empty());
  EXPECT_NE(access(("/dev/shm/" + name).c_str(), F_OK), 0);
}

TEST(ClientModels, WhatIsThere) {
  EXPECT_EQ(daemon().server_metadata().name, "tensord");
  EXPECT_FALSE(daemon().server_metadata().extensions.empty());
  const ModelMetadata simple = daemon().model_metadata("simple");
  ASSERT_EQ(simple.inputs.size(), 2u);
  EXPECT_EQ(simple.inputs[0].data_type, "INT32");
  EXPECT_EQ(simple.inputs[0].shape, (std::vector<int64_t>{-1, 16}));
  EXPECT_NE(daemon().model_config_json("simple").find("\"max_batch_size\""), std::string::npos);
  const uint64_t before = daemon().statistics("simple").at(0).success.count;
  daemon().infer("simple", {counted(0, 16), counted(0, 16)});
  const ModelStatistics after = daemon().statistics("simple").at(0);
  EXPECT_EQ(after.success.count, before + 1);
  EXPECT_GT(after.compute_infer.ns, 0u);
}

TEST(ClientModels, ComeAndGo) {
  EXPECT_TRUE(daemon().is_model_ready("simple_int8"));
  daemon().unload_model("simple_int8");
  EXPECT_FALSE(daemon().is_model_ready("simple_int8"));
  std::string state;
  for (const ModelState& model : daemon().models()) {
    if (model.name == "simple_int8") state = model.state;
  }
  EXPECT_EQ(state, "UNAVAILABLE");
  daemon().load_model("simple_int8");
  EXPECT_TRUE(daemon().is_model_ready("simple_int8", "1"));
  daemon().load_model("simple_int8", {.config = R"({"max_batch_size": 4})"});
  EXPECT_NE(daemon().model_config_json("simple_int8").find("\"max_batch_size\":4"), std::string::npos);
  daemon().load_model("simple_int8", {.parameters = {{"version_labels", "stable=1"}}});
  EXPECT_TRUE(daemon().is_model_ready("simple_int8", "stable"));
  error_of<InvalidArgumentError>([] { daemon().load_model(""); });
}

TEST(ClientModels, Settings) {
  EXPECT_EQ(daemon().log_settings({{"log_verbose_level", {"1"}}}).at("log_verbose_level"),
            std::vector<std::string>{"1"});
  EXPECT_EQ(daemon().log_settings({{"log_verbose_level", {"0"}}}).at("log_verbose_level"),
            std::vector<std::string>{"0"});
  EXPECT_EQ(daemon().trace_settings({{"trace_rate", {"77"}}}).at("trace_rate"), std::vector<std::string>{"77"});
}

TEST(ClientSecurity, TlsAndTokens) {
  ClientOptions options;
  options.tls = TlsOptions::from_files(environment("TENSORD_ROOT"));
  options.timeout = milliseconds(20'000);
  Client without(environment("TENSORD_TLS_ADDRESS"), options);
  EXPECT_TRUE(without.is_live());
  error_of<UnauthenticatedError>([&] { without.infer("simple", {counted(0, 16), counted(0, 16)}); });
  options.token = "sesame";
  options.compression = Compression::kGzip;
  Client with(environment("TENSORD_TLS_ADDRESS"), options);
  EXPECT_EQ(values_of(with.infer("simple", {counted(1, 16), counted(2, 16)}).output("OUTPUT0"))[0], 3);
  options.token = "only-metadata";
  Client other(environment("TENSORD_TLS_ADDRESS"), options);
  EXPECT_EQ(other.model_metadata("simple").name, "simple");
  error_of<PermissionDeniedError>([&] {
    other.infer({.model = "simple", .inputs = {{"INPUT0", counted(0, 16)}, {"INPUT1", counted(0, 16)}}});
  });
  for (const ClientOptions& wrong : {ClientOptions{.token = "two\nlines"}, ClientOptions{.headers = {{"Upper", "x"}}},
                                     ClientOptions{.headers = {{"x-id", "\n"}}}}) {
    EXPECT_NE(error_of<InvalidArgumentError>([&] { Client("127.0.0.1:1", wrong).models(); }), "");
  }
  error_of<InvalidArgumentError>([] { daemon().models(false, {.headers = {{"", "x"}}}); });
  error_of<NotFoundError>([] { TlsOptions::from_files("/nowhere/ca.pem"); });
  error_of<NotFoundError>([] { TlsOptions::from_files("/tmp"); });  // a folder
}

TrainingClient::JobSpec job_spec() {
  TrainingClient::JobSpec spec;
  spec.mutable_model()->set_name("mlp");
  spec.mutable_loss()->set_builtin("cross_entropy");
  spec.mutable_loss()->set_label("y");
  spec.set_batch_size(50);
  return spec;
}

TEST(ClientTraining, FromAFile) {
  TrainingClient training = daemon().training();
  TrainingClient::JobSpec spec = job_spec();
  spec.mutable_data()->set_file("clusters.npz");
  spec.set_epochs(4);
  spec.mutable_publish()->set_when("at_end");
  const TrainingClient::Job created = training.create(spec);
  size_t points = 0;
  const TrainingClient::Job job = training.watch(created.id(), [&](const auto&, const auto& added) {
    points += added.size();
    return true;
  });
  EXPECT_EQ(job.state(), training::v1::JOB_STATE_COMPLETED) << job.message();
  EXPECT_GT(points, 0u);
  EXPECT_EQ(training.list("mlp").size(), 1u);
  EXPECT_EQ(job.published_version(), 2);
  EXPECT_EQ(training.roll_back("mlp"), (std::pair<int64_t, int64_t>(2, 1)));
  training.remove(job.id());
  error_of<NotFoundError>([&] { training.get(job.id()); });
}

TEST(ClientTraining, FromAStreamAndAnUpload) {
  TrainingClient training = daemon().training();
  TrainingClient::JobSpec spec = job_spec();
  spec.mutable_model()->clear_name();
  std::vector<uint64_t> sent;
  uint64_t size = 0;
  spec.mutable_model()->set_upload_id(
      training.upload(environment("TENSORD_ARCHIVE"), {}, [&](uint64_t now, uint64_t of) {
        sent.push_back(now);
        size = of;
      }));
  ASSERT_FALSE(sent.empty());
  EXPECT_TRUE(std::is_sorted(sent.begin(), sent.end()));
  EXPECT_EQ(sent.back(), size);
  spec.mutable_data()->set_streamed(true);
  const std::string id = training.create(spec).id();
  DataStream stream = training.stream_data(id);
  for (int64_t i = 0; i < 5; ++i) {
    std::vector<float> x(20 * 64, static_cast<float>(i));
    stream.send({{"x", Tensor::take(std::move(x), {20, 64})}, {"y", Tensor::take(std::vector<int64_t>(20, i), {20})}});
  }
  EXPECT_EQ(stream.complete(), 5);
  const TrainingClient::Job job = training.wait(id);
  EXPECT_EQ(job.state(), training::v1::JOB_STATE_COMPLETED) << job.message();
  EXPECT_EQ(job.progress().step(), 5);
  error_of<FailedPreconditionError>([&] { stream.complete(); });
  DataStream late = training.stream_data(id);
  EXPECT_NE(error_of<FailedPreconditionError>([&] { late.complete(); }), "");
  error_of<InvalidArgumentError>([&] { training.create(job_spec()); });
}

}  // namespace
}  // namespace tensord::client
