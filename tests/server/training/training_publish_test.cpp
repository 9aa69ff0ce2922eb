#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "server/training/publisher.h"
#include "tests/server/fake_models.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::training_publish_test {
namespace {

namespace fs = std::filesystem;

class PublisherTest : public ::testing::Test {
 protected:
  PublisherTest() {
    fs::create_directories(root_ / "m" / "1");
    std::ofstream(root_ / "m" / "1" / "model.pt") << "model";
    Repository::Options options{.roots = {root_.string()}, .only = {}};
    repository_ = std::make_unique<Repository>(
        options,
        [](const ModelFiles& files, const ModelConfig&) {
          const std::string& file = files.model;
          check(fs::file_size(file) > 0, "an empty model");
          return fixtures::identity_model();
        },
        metrics_);
    repository_->load_all();
    publisher_ = std::make_unique<Publisher>(*repository_);
  }

  static JobStatus job(const std::string& id) {
    JobStatus status;
    status.id = id;
    status.spec.model.name = status.spec.publish.model = "m";
    return status;
  }
  Repository::Added publish(const std::string& id, const std::string& text = "model") {
    return publisher_->publish(job(id), "model.pt", R"({"job": ")" + id + "\"}", [&](const std::string& path) {
      ++written_;
      std::ofstream(path) << text;
    });
  }

  const fixtures::TemporaryFolder temporary_{"publish"};
  const fs::path root_ = temporary_.path();
  Metrics metrics_{"test"};
  std::unique_ptr<Repository> repository_;
  std::unique_ptr<Publisher> publisher_;
  int written_ = 0;
};

TEST_F(PublisherTest, AJobPublishesOnce) {
  EXPECT_EQ(publish("a").version, 2);
  EXPECT_EQ(publish("b").version, 3);
  // As after a crash between writing the new version and recording it in the job.
  EXPECT_EQ(publish("a").version, 2);
  EXPECT_EQ(written_, 2);
  repository_->roll_back("m");
  EXPECT_EQ(publish("b").version, 3);
  EXPECT_EQ(repository_->find("m", "")->version(), "2");
}

// Folders of users, and files that are not the record of a job.
TEST_F(PublisherTest, OtherFoldersAreNotWhatAJobPublished) {
  for (int i = 0; i < 40; ++i) {
    const fs::path folder = root_ / "m" / concat("draft-", i);
    fs::create_directories(folder);
    std::ofstream(folder / "job.json") << (i % 2 == 0 ? R"({"job": "a"})" : R"(["a"])");
  }
  fs::create_directories(root_ / "m" / ".new-7");
  std::ofstream(root_ / "m" / ".new-7" / "job.json") << R"({"job": "a"})";
  EXPECT_EQ(publish("a").version, 2);
  EXPECT_EQ(publish("a").version, 2);
  EXPECT_EQ(written_, 1);
}

TEST_F(PublisherTest, AModelOfAnotherNameNeedNotBeThere) {
  JobStatus other = job("a");
  other.spec.publish.model = "n";
  const auto write = [](const std::string& path) { std::ofstream(path) << "model"; };
  EXPECT_EQ(publisher_->publish(other, "model.onnx", R"({"job": "a"})", write).version, 1);
  EXPECT_TRUE(fs::exists(root_ / "n" / "1" / "model.onnx"));
  EXPECT_TRUE(repository_->has_model("n"));
  // An upload is independent of a served model.
  JobStatus upload = job("b");
  upload.spec.model = {.name = "m", .version = 0, .upload_id = "upload"};
  repository_->unload("m");
  EXPECT_EQ(publisher_->publish(upload, "model.pt", R"({"job": "b"})", write).version, 2);
}

TEST_F(PublisherTest, AModelThatWasUnloadedStaysUnloaded) {
  repository_->unload("m");
  try {
    publish("a");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_NE(std::string(error.what()).find("'m' was unloaded while the job ran"), std::string::npos);
  }
  EXPECT_FALSE(repository_->has_model("m"));
}

TEST_F(PublisherTest, WhatCannotBeServedIsNotThere) {
  EXPECT_THROW(publish("a", ""), Error);
  EXPECT_EQ(repository_->find("m", "")->version(), "1");
  EXPECT_FALSE(fs::exists(root_ / "m" / "2"));
  EXPECT_EQ(publish("a").version, 2);
}

}  // namespace
}  // namespace tensord::server::training_publish_test
