// Limits of training, each at its last value and one beyond, and invalid contents of its files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/ops/generator.h"
#include "server/training/data/batch_stream.h"
#include "server/training/evaluation_metrics.h"
#include "server/training/hosts/host_registry.h"
#include "server/training/jobs/job_store.h"
#include "server/training/trainer_state.h"
#include "tests/server/error_of.h"
#include "tests/server/few_files.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::training_bounds_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct SilentLink final : HostLink {
  void send(const HostOrder&) override {}
  void close(const Error&) override {}
};

HostInfo host(const std::string& name, const std::string& instance = std::string(16, 'i'), int64_t processes = 1) {
  return {.name = name, .instance = instance, .version = "1", .processes = processes, .address = "10.0.0.2"};
}

TEST(TrainingBounds, HostsAtTheirLimits) {
  HostRegistry registry("1");
  const auto join = [&](const HostInfo& info) { return registry.join(info, std::make_shared<SilentLink>()); };
  join(host(std::string(253, 'n')));
  EXPECT_EQ(error_of([&] { join(host(std::string(254, 'n'))); }).code(), ErrorCode::kInvalidArgument);
  // The ends of each range of letters, and their neighbors.
  for (const char letter : std::string("azAZ09.-_")) EXPECT_NO_THROW(join(host({letter}))) << letter;
  for (const char letter : std::string("`{@[/:,^ ")) {
    EXPECT_THAT(error_of([&] { join(host({letter})); }).what(), HasSubstr("name: a host's name")) << letter;
  }
  join(host("sixteen"));
  join(host("sixtyfour", std::string(64, 'i')));
  for (const size_t size : {15, 65}) {
    EXPECT_THAT(error_of([&] { join(host("other", std::string(size, 'i'))); }).what(), HasSubstr("16 to 64")) << size;
  }
}

TEST(TrainingBounds, ManyHosts) {
  HostRegistry registry("1");
  const auto join = [&](int i) { registry.join(host(concat("h", i)), std::make_shared<SilentLink>()); };
  for (int i = 0; i < 1024; ++i) join(i);
  const Error error = error_of([&] { join(1024); });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.what(), HasSubstr("at most 1024 hosts can join"));
  EXPECT_THAT(registry.hosts(), SizeIs(1024));
  join(7);  // a host that has joined may join again
}

TEST(TrainingBounds, ReportsAreReadUpTo64MiB) {
  HostRegistry registry("1");
  const auto joined = registry.join(host("a"), std::make_shared<SilentLink>());
  const auto line = [&](size_t bytes) { joined->receive(LineReport{"now", 0, false, std::string(bytes, 'x')}); };
  constexpr size_t kMax = 64 << 20, kOverhead = 256;
  joined->begin("now");
  line(kMax - kOverhead);
  EXPECT_THAT(joined->take_reports(), SizeIs(1));
  EXPECT_EQ(error_of([&] { line(kMax - kOverhead + 1); }).code(), ErrorCode::kResourceExhausted);
  // A short report also has a cost, and a new start begins at zero.
  joined->begin("now");
  line(kMax - 2 * kOverhead);
  line(0);
  EXPECT_EQ(error_of([&] { line(0); }).code(), ErrorCode::kResourceExhausted);
  joined->begin("now");
  EXPECT_THAT(joined->take_reports(), SizeIs(0));
  line(kMax - kOverhead);
}

using Arrays = std::vector<std::pair<std::string, Tensor>>;
Arrays batch(int64_t rows) { return {{"x", Tensor::empty(Dims{rows, 4}, DType::kFloat32)}}; }

TEST(TrainingBounds, AStreamIsFullAtItsBytes) {
  // Only the bytes of waiting batches count: three batches of 16 bytes fit below 48, a fourth does not.
  BatchStream stream(48, 0);
  stream.attach();
  int called = 0;
  const auto ask = [&] { stream.when_room([&] { ++called; }); };
  stream.push({}, batch(1));
  stream.push({}, batch(1));
  ask();
  EXPECT_EQ(called, 1);
  stream.push({}, batch(1));
  ask();
  EXPECT_EQ(called, 1);
  StreamedBatch got;
  stream.pop(std::chrono::milliseconds(0), got);
  EXPECT_EQ(called, 2);
}

TEST(TrainingBounds, WhatBatchesMayNotBe) {
  BatchStream stream(1 << 20, 0);
  stream.attach();
  const auto refusal = [&](const Arrays& arrays) {
    return std::string(error_of([&] { stream.push({}, arrays); }).what());
  };
  EXPECT_EQ(refusal({}), "batch 0 has no arrays");
  EXPECT_THAT(refusal(batch(0)), HasSubstr("batch 0: 'x' has 0 rows"));
  EXPECT_THAT(refusal({batch(2)[0], {"y", Tensor::scalar(1.0f)}}), HasSubstr("'y' is a single number"));
  EXPECT_THAT(refusal({batch(2)[0], {"y", batch(3)[0].second}}), HasSubstr("'y' has 3 rows, 'x' has 2"));
  EXPECT_THAT(refusal({batch(2)[0], batch(2)[0]}), HasSubstr("'x' appears twice"));
  EXPECT_TRUE(stream.push(0, batch(1)));  // one row is enough
  EXPECT_THAT(refusal({{"x", Tensor::empty(Dims{2, 4, 1}, DType::kFloat32)}}), HasSubstr("has shape [2, 4, 1]"));
  stream.detach(true);
  EXPECT_EQ(refusal(batch(1)), "the job's data is complete");
}

Tensor floats(const Dims& sizes, float value = 0) {
  const Tensor out = Tensor::empty(sizes, DType::kFloat32);
  std::fill_n(out.data<float>(), out.numel(), value);
  return out;
}

TEST(TrainingBounds, OutputsAndLabelsAreComparedElementByElement) {
  const auto refusal = [](const char* metric, const Tensor& output, const Tensor& label) {
    EvaluationMetrics metrics({metric}, LossSpec{});
    try {
      metrics.add(0, 1, output, label);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(refusal("accuracy", floats({3, 4}), floats({3})), "none");
  EXPECT_EQ(refusal("accuracy", floats({3, 4}), floats({2})), "accuracy: the output has shape [3, 4], the label [2]");
  EXPECT_EQ(refusal("accuracy", floats({3, 4}), floats({4})), "accuracy: the output has shape [3, 4], the label [4]");
  EXPECT_EQ(refusal("accuracy", floats({3, 1}), floats({3})), "none");
  EXPECT_EQ(refusal("accuracy", floats({3, 1}), floats({2})), "accuracy: the output has shape [3, 1], the label [2]");
  EXPECT_EQ(refusal("mae", floats({3, 2}), floats({6})), "none");
  EXPECT_THAT(refusal("mae", floats({3, 2}), floats({5})), HasSubstr("they cannot be compared"));
  // No classes, or a dimension without elements, must not divide by zero.
  EXPECT_EQ(refusal("accuracy", floats({0, 4}), floats({0})), "none");
  EXPECT_EQ(refusal("accuracy", floats({3, 0}), floats({0})), "none");
}

// A score of exactly the threshold is class 0.
TEST(TrainingBounds, BinaryAccuracyAtItsLimits) {
  const auto accuracy = [](const char* loss, float score, float label) {
    LossSpec spec;
    spec.builtin = loss;
    EvaluationMetrics metrics({"accuracy"}, spec);
    metrics.add(0, 1, floats({1}, score), floats({1}, label));
    return metrics.means().at("accuracy");
  };
  EXPECT_EQ(accuracy("bce", 0.5f, 0), 1);
  EXPECT_EQ(accuracy("bce", std::nextafter(0.5f, 1.0f), 1), 1);
  EXPECT_EQ(accuracy("bce_with_logits", 0, 0), 1);
  EXPECT_EQ(accuracy("bce_with_logits", std::nextafter(0.0f, 1.0f), 1), 1);
  EXPECT_EQ(accuracy("bce_with_logits", 1, 0.5f), 0);
}

class JobFiles : public ::testing::Test {
 protected:
  JobStatus status(const std::string& id, int64_t created = 1) {
    JobStatus out;
    out.id = id;
    out.created_at_ms = created;
    return out;
  }
  size_t uploads() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_ / "uploads"), fs::directory_iterator()));
  }

  const fixtures::TemporaryFolder temporary_{"training_bounds"};
  const fs::path folder_ = temporary_.path();
};

TEST_F(JobFiles, WhatIsOfAnotherJobOrTooLargeIsSetAside) {
  const JobStore store(folder_.string());
  const std::string good = store.make_job("good"), moved = store.make_job("moved"), large = store.make_job("large");
  store.save(status(good));
  store.save(status(good));
  fs::copy_file(store.job_folder(good) / "job.json", store.job_folder(moved) / "job.json");
  store.save(status(large));
  const fs::path file = store.job_folder(large) / "job.json";
  {
    std::ofstream out(file, std::ios::app);
    out << std::string((16 << 20) - fs::file_size(file), ' ');
  }
  EXPECT_THAT(store.load(), SizeIs(2));  // 16 MiB are allowed
  EXPECT_FALSE(fs::exists(store.job_folder(moved)));
  EXPECT_TRUE(fs::exists(folder_ / "unreadable" / moved));
  std::ofstream(file, std::ios::app) << ' ';
  ASSERT_THAT(store.load(), SizeIs(1));
  EXPECT_EQ(store.load()[0].id, good);
  EXPECT_TRUE(fs::exists(folder_ / "unreadable" / large));
}

TEST_F(JobFiles, WhatIsSetAsideTwiceIsKeptTwice) {
  const JobStore store(folder_.string());
  for (int i = 0; i < 3; ++i) {
    fs::create_directory(store.job_folder("broken"));
    std::ofstream(store.job_folder("broken") / "job.json") << "{";
    EXPECT_THAT(store.load(), SizeIs(0));
  }
  for (const char* name : {"broken", "broken-2", "broken-3"}) {
    EXPECT_TRUE(fs::exists(folder_ / "unreadable" / name / "job.json")) << name;
  }
}

TEST_F(JobFiles, NamesOfFoldersAreShortAndPlain) {
  const JobStore store(folder_.string());
  const auto head = [&](const std::string& name) {
    const std::string id = store.make_job(name);
    return id.substr(0, id.size() - 7);  // without '-' and six digits
  };
  EXPECT_EQ(head(std::string(40, 'n')), std::string(40, 'n'));
  EXPECT_EQ(head(std::string(41, 'n')), std::string(40, 'n'));
  EXPECT_EQ(head(""), "job");
  EXPECT_EQ(head("azAZ09_"), "azAZ09_");
  EXPECT_EQ(head("`{@[/:."), "-------");
}

TEST_F(JobFiles, UploadsGiveWayOldestFirst) {
  const JobStore store(folder_.string());
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(store.make_upload(""));
    std::ofstream(store.upload_file("", ids.back())) << std::string(10, 'u');
    fs::last_write_time(store.upload_file("", ids.back()),
                        fs::file_time_type::clock::now() - std::chrono::hours(10 - i));
  }
  store.make_room_for_upload("", 5, 50, 10);  // one more fits, by number and by bytes
  EXPECT_EQ(uploads(), 4u);
  store.make_room_for_upload("", 5, 49, 10);
  EXPECT_EQ(uploads(), 3u);
  EXPECT_FALSE(fs::exists(store.upload_file("", ids[0])));
  store.make_room_for_upload("", 5, 0, 1 << 20);  // no limit of bytes
  EXPECT_EQ(uploads(), 3u);
  store.make_room_for_upload("", 3, 0, 10);
  EXPECT_EQ(uploads(), 2u);
  EXPECT_TRUE(fs::exists(store.upload_file("", ids[3])));
  store.remove_uploads(8 * 3600);  // one was written slightly more than eight hours ago, the other seven
  EXPECT_EQ(uploads(), 1u);
  EXPECT_TRUE(fs::exists(store.upload_file("", ids[3])));
}

TEST_F(JobFiles, UploadsThatAreGoneDoNotCount) {
  const JobStore store(folder_.string());
  const std::string kept = store.make_upload("");
  std::ofstream(store.upload_file("", kept)) << "u";
  // Like entries that are removed during the scan.
  const fs::path gone = store.upload_file("", "gone"), sizeless = store.upload_file("", "sizeless");
  fs::create_symlink(folder_ / "nowhere", gone);
  fs::create_directory(sizeless);
  store.make_room_for_upload("", 2, 2, 1);
  EXPECT_TRUE(fs::is_directory(sizeless));
  store.remove_uploads(3600);
  EXPECT_TRUE(fs::exists(store.upload_file("", kept)));
  EXPECT_TRUE(fs::is_symlink(gone));
}

TEST_F(JobFiles, WithoutFilesNothingIsReadOrRemoved) {
  const JobStore store(folder_.string());
  const std::string id = store.make_job("m");
  store.save(status(id));
  {
    const tensord::fixtures::FewFiles few(0);
    const Error error = error_of([&] { store.remove(id); });
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr(store.job_folder(id).string() + ": cannot be removed: "));
  }
  store.save(status(id));
  ::testing::internal::CaptureStderr();
  {
    const tensord::fixtures::FewFiles few(1);  // for the folder
    EXPECT_THAT(store.load(), SizeIs(0));
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("job.json: cannot be read"));
}

TEST_F(JobFiles, UploadsAreMadeWithoutStandardInput) {
  const JobStore store(folder_.string());
  const int input = dup(0);
  close(0);  // the next file gets this number
  const std::string id = store.make_upload("");
  dup2(input, 0);
  close(input);
  EXPECT_TRUE(fs::exists(store.upload_file("", id)));
  EXPECT_EQ(uploads(), 1u);
}

TEST_F(JobFiles, AFolderOfANewerDaemonIsLeftAlone) {
  const fs::path format = folder_ / "format.json";
  const auto refused = [&](const std::string& text) {
    std::ofstream(format) << text;
    const Error error = error_of([&] { JobStore(folder_.string()); });
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1) << text;
    return error;
  };
  const Error newer = refused(R"({"format": 2, "more": 1})");
  EXPECT_EQ(newer.code(), ErrorCode::kFailedPrecondition);
  EXPECT_THAT(newer.what(), HasSubstr(folder_.string() + ": a newer tensord wrote this training folder (format 2; this "
                                                         "version reads up to 1)"));
  for (const char* text : {"", "{}", "[1]", R"({"format": "1"})", R"({"format": 0})", R"({"format": -1})"}) {
    EXPECT_THAT(refused(text).what(), HasSubstr("format.json: damaged")) << text;
  }
  // What this version writes it reads; folders of before there was the file have none.
  fs::remove(format);
  { const JobStore store(folder_.string()); }
  EXPECT_TRUE(fs::exists(format));
  const JobStore again(folder_.string());
}

TEST_F(JobFiles, FoldersThatCannotBeMadeAreNamed) {
  const fs::path file = folder_ / "file";
  std::ofstream(file) << "f";
  EXPECT_THAT(error_of([&] { JobStore(file.string()); }).what(), HasSubstr((file / "jobs: cannot be made").string()));
  fs::create_directory(folder_ / "lock");
  EXPECT_THAT(error_of([&] { JobStore(folder_.string()); }).what(), HasSubstr("or it cannot be written"));
  fs::remove(folder_ / "lock");
  // A job that cannot be moved aside stays where it is, and the log names its path.
  const JobStore store(folder_.string());
  std::ofstream(folder_ / "unreadable") << "f";
  fs::create_directory(store.job_folder("broken"));
  std::ofstream(store.job_folder("broken") / "job.json") << "{";
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(store.load(), SizeIs(0));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(store.job_folder("broken").string()));
  EXPECT_TRUE(fs::exists(store.job_folder("broken")));
}

TEST_F(JobFiles, CurvesAndGenerators) {
  const auto curve = [&](const std::string& text) {
    std::ofstream(folder_ / "curve.json") << text;
    return error_of([&] { read_curve((folder_ / "curve.json").string()); });
  };
  for (const char* text : {"", "[]", "{}", R"({"status": {}})", R"({"points": []})"}) {
    EXPECT_EQ(curve(text).code(), ErrorCode::kDataLoss) << text;
    EXPECT_THAT(curve(text).what(), HasSubstr("curve.json: damaged")) << text;
  }
  std::ofstream(folder_ / "curve.json") << to_text(TrainerCurve{});
  EXPECT_TRUE(read_curve((folder_ / "curve.json").string()).points.empty());
  ops::Generator generator(1);
  const ops::Value state = generator_state(generator);
  set_generator_state(generator, state);
  EXPECT_THAT(error_of([&] { set_generator_state(generator, floats({4})); }).what(), HasSubstr("must be bytes"));
}

}  // namespace
}  // namespace tensord::server::training_bounds_test
