#include "server/training/jobs/job_origin.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "server/training/jobs/file_fingerprint.h"
#include "tests/server/error_of.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::training_origin_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Of "abc", as sha256sum prints it.
constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class JobOriginTest : public ::testing::Test {
 protected:
  JobOriginTest() {
    for (const char* name : {"job", "data"}) fs::create_directories(folder_ / name);
    write("base.pt", "abc");
    write("data/rows.npz", "abc");
    write("data/test.npz", "other");
    job_.id = "m-1";
    job_.spec.name = "mine";
    job_.spec.model.name = "m";
    job_.spec.data.file = "rows.npz";
    job_.spec.evaluation.file = "test.npz";
    job_.spec.publish = {.when = "best", .model = "m", .metric = "accuracy", .bar = 0.9};
    job_.base_version = 3;
    job_.progress.step = 50;
    job_.progress.metrics = {{"accuracy", 0.7}, {"loss", 2.0}};
    job_.progress.best_step = 20;
    job_.progress.best_metric = 0.95;
    job_.progress.best_metrics = {{"accuracy", 0.95}, {"loss", 0.2}};
  }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  void note(int64_t step, bool is_interrupted = false) const {
    inputs_.note(job_.spec, folder_ / "base.pt", step, [=] { return is_interrupted; });
  }
  Json origin() const { return Json::parse(inputs_.origin_of(job_)); }

  const fixtures::TemporaryFolder temporary_{"origin"};
  const fs::path folder_ = temporary_.path();
  const JobInputs inputs_{folder_ / "job", (folder_ / "data").string()};
  JobStatus job_;
};

TEST_F(JobOriginTest, TheBestVersionHasTheBestStepsMetrics) {
  note(0);
  const Json found = origin();
  EXPECT_EQ(found["job"], "m-1");
  EXPECT_EQ(found["step"], 20);
  EXPECT_EQ(found["last_step"], 50);
  EXPECT_EQ(found["metrics"], Json({{"accuracy", 0.95}, {"loss", 0.2}}));
  EXPECT_GE(found["metrics"][found["spec"]["publish"]["metric"].get<std::string>()], found["spec"]["publish"]["bar"]);
  EXPECT_EQ(found["seed"], 0);
  EXPECT_EQ(found["base_version"], 3);
  EXPECT_EQ(found["base_sha256"], kAbc);
  EXPECT_EQ(found["base_size_bytes"], 3);
  ASSERT_EQ(found["data"].size(), 2U);
  EXPECT_EQ(found["data"][0],
            Json({{"use", "training"}, {"file", "rows.npz"}, {"from_step", 0}, {"size_bytes", 3}, {"sha256", kAbc}}));
  EXPECT_EQ(found["data"][1]["use"], "evaluation");
  EXPECT_EQ(found["data"][1]["size_bytes"], 5);
}

TEST_F(JobOriginTest, AJobWithoutAnEvaluationHasItsOwnFileAlone) {
  job_.spec.evaluation.file.clear();
  note(0);
  ASSERT_EQ(origin()["data"].size(), 1U);
  EXPECT_EQ(origin()["data"][0]["use"], "training");
}

TEST_F(JobOriginTest, OneRankHasNothingToSum) {
  note(0);
  job_.spec.distribution.world_size = 1;
  EXPECT_FALSE(origin().contains("all_reduce"));
}

TEST_F(JobOriginTest, TheLastVersionHasTheLastStepsMetrics) {
  job_.spec.publish.when = "at_end";
  note(0);
  EXPECT_EQ(origin()["step"], 50);
  EXPECT_EQ(origin()["metrics"], Json({{"accuracy", 0.7}, {"loss", 2.0}}));
}

TEST_F(JobOriginTest, DataThatHasChangedIsNotedBesideWhatItWas) {
  note(0);
  note(10);  // continues with the same files
  EXPECT_EQ(origin()["data"].size(), 2U);
  write("data/rows.npz", "abcd");
  note(15);
  ASSERT_EQ(origin()["data"].size(), 3U);
  EXPECT_EQ(origin()["data"][2]["from_step"], 15);
  EXPECT_EQ(origin()["data"][2]["size_bytes"], 4);
  // Data read after the published step is not included.
  write("data/rows.npz", "abcde");
  note(20);
  EXPECT_EQ(origin()["data"].size(), 3U);
  job_.spec.publish.when = "at_end";
  EXPECT_EQ(origin()["data"].size(), 4U);
  // A base that is overwritten in place later is not what the job started from.
  write("base.pt", "later");
  note(30);
  EXPECT_EQ(origin()["base_sha256"], kAbc);
}

TEST_F(JobOriginTest, AnInterruptedLookNotesNothing) {
  note(0, /*is_interrupted=*/true);
  EXPECT_FALSE(fs::exists(folder_ / "job" / "inputs.json"));
  note(0);
  EXPECT_EQ(origin()["data"].size(), 2U);
}

TEST_F(JobOriginTest, ALookIsWholeOrNothing) {
  for (int looks = 0;; ++looks) {
    int left = looks;
    inputs_.note(job_.spec, folder_ / "base.pt", 0, [&] { return left-- <= 0; });
    if (left >= 0) break;
    ASSERT_FALSE(fs::exists(folder_ / "job" / "inputs.json")) << looks;
    ASSERT_LT(looks, 100);
  }
  EXPECT_EQ(origin()["data"].size(), 2U);
}

TEST_F(JobOriginTest, WhatIsNoNoteIsReplaced) {
  for (const char* text : {"[]", "{\"data\": 5}", "{", "{}", R"({"data": [5]})", R"({"data": [{"use": 5}]})",
                           R"({"data": [{"from_step": "1"}]})", R"({"data": [], "base": 5})",
                           R"({"data": [], "base": {"size_bytes": []}})"}) {
    write("job/inputs.json", text);
    EXPECT_EQ(origin()["data"], Json::array()) << text;
    note(0);
    EXPECT_EQ(origin()["data"].size(), 2U) << text;
  }
}

TEST_F(JobOriginTest, FilesAreToldApartByName) {
  note(0);
  write("data/again.npz", "abc");
  job_.spec.data.file = "again.npz";
  note(10);
  ASSERT_EQ(origin()["data"].size(), 3U);
  EXPECT_EQ(origin()["data"][2]["file"], "again.npz");
}

TEST_F(JobOriginTest, WithoutABestStepTheLastCounts) {
  job_.progress.best_step = 0;
  note(0);
  EXPECT_EQ(origin()["step"], 50);
  EXPECT_EQ(origin()["metrics"], Json({{"accuracy", 0.7}, {"loss", 2.0}}));
  // Published before any step: its data is included all the same.
  job_.progress.step = 0;
  EXPECT_EQ(origin()["data"].size(), 2U);
}

TEST_F(JobOriginTest, FactsOfAFileAreOfAllOfIt) {
  const auto never = [] { return false; };
  const fs::path file = folder_ / "base.pt", missing = folder_ / "missing";
  FingerprintCache known;
  EXPECT_FALSE(known.of(file, [] { return true; }));
  EXPECT_EQ(known.of(file, never)->sha256, kAbc);
  int looks = 0;
  EXPECT_EQ(known.of(file, [&] { return ++looks > 0; })->sha256, kAbc);
  EXPECT_EQ(looks, 0);  // not read again
  write("base.pt", "abcd");
  EXPECT_EQ(known.of(file, never)->size_bytes, 4U);
  EXPECT_EQ(error_of([&] { known.of(missing, never); }).code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_of([&] { fingerprint_of(missing, never); }).code(), ErrorCode::kNotFound);
  EXPECT_NE(std::string(error_of([&] { fingerprint_of(folder_, never); }).what()).find("read"), std::string::npos);
}

TEST_F(JobOriginTest, AFileThatIsNotThereIsNamed) {
  fs::remove(folder_ / "data" / "rows.npz");
  try {
    note(0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("rows.npz"), std::string::npos) << error.what();
  }
}

// The record of a version must not omit inputs that are temporarily unreadable, nor replace them by the note.
TEST_F(JobOriginTest, InputsThatCannotBeReadAreAnError) {
  note(0);
  const fs::path file = folder_ / "job" / "inputs.json", kept = folder_ / "kept";
  fs::rename(file, kept);
  fs::create_directory(file);
  EXPECT_EQ(error_of([&] { origin(); }).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error_of([&] { note(1); }).code(), ErrorCode::kUnavailable);
  fs::remove(file);
  fs::rename(kept, file);
  EXPECT_EQ(origin()["data"].size(), 2U);
}

TEST_F(JobOriginTest, HowSeveralRanksAddUp) {
  EXPECT_FALSE(origin().contains("all_reduce"));
  job_.spec.distribution.world_size = 2;
  EXPECT_EQ(origin()["all_reduce"], Json({{"backend", "gloo"}, {"algorithm", "ring"}}));
}

TEST_F(JobOriginTest, StreamedDataAndOlderJobs) {
  job_.spec.data = {};
  job_.spec.data.streamed = true;
  job_.spec.evaluation.file.clear();
  job_.progress.best_metrics.clear();  // as an older daemon left it
  const Json found = origin();
  EXPECT_EQ(found["data"], Json::array({{{"use", "training"}, {"streamed", true}}}));
  EXPECT_EQ(found["metrics"], Json({{"accuracy", 0.95}}));
  EXPECT_FALSE(found.contains("base_sha256"));
}

}  // namespace
}  // namespace tensord::server::training_origin_test
