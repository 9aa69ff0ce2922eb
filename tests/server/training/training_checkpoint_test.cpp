#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/jit/archive/torch_file.h"
#include "server/training/checkpoint.h"
#include "server/training/jobs/job_store.h"
#include "server/training/value_dict.h"
#include "tests/server/error_of.h"
#include "tests/server/few_files.h"
#include "tests/server/temporary_folder.h"
#include "tests/support/synced_files.h"

// This file is truncated right after it was mapped.
static std::string cut_when_mapped;

extern "C" void* mmap(void* at, size_t size, int protection, int flags, int descriptor, off_t offset) noexcept {
  void* const data =
      reinterpret_cast<void*>(syscall(SYS_mmap, at, size, protection, flags, descriptor, offset));  // NOLINT
  if (cut_when_mapped.empty() || descriptor < 0) return data;
  if (tensord::fixtures::path_of(descriptor) != cut_when_mapped) return data;
  EXPECT_EQ(truncate(std::exchange(cut_when_mapped, "").c_str(), 0), 0);
  return data;
}

namespace tensord::server::training_checkpoint_test {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public ::testing::Test {
 protected:
  static Checkpoints::Files files(int64_t step, size_t model_bytes = 100) {
    ValueDict dict;
    dict.set("step", step);
    return {.save_model = [=](const std::string& path) { std::ofstream(path) << std::string(model_bytes, 'm'); },
            .state = dict.value(),
            .curve = "{}"};
  }
  static void change_a_byte(const fs::path& file) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(fs::file_size(file) / 2));
    stream.put('!');
  }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  const fixtures::TemporaryFolder temporary_{"checkpoint"};
  const fs::path folder_ = temporary_.path();
};

TEST_F(CheckpointTest, KeepsTheNewest) {
  const Checkpoints checkpoints(folder_, 2);
  EXPECT_FALSE(checkpoints.newest());
  for (const int64_t step : {5, 10, 100, 20}) checkpoints.write(step, files(step));
  EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{20, 100}));
  const auto newest = checkpoints.newest();
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->step, 100);
  EXPECT_EQ(ValueDict(jit::load_torch_file(newest->state_file())).at("step").to_int(), 100);
}

// All files and their folder are synced before the rename, and the parent folder afterwards.
TEST_F(CheckpointTest, IsOnTheDiskBeforeItHasItsName) {
  const Checkpoints checkpoints(folder_, 2);
  std::string unfinished;
  Checkpoints::Files written = files(7);
  written.save_model = [&](const std::string& path) {
    unfinished = fs::path(path).parent_path().string();
    AtomicFile file(path);  // like Module::save
    file.write("model");
    file.commit();
  };
  tensord::fixtures::sync_log().clear();
  checkpoints.write(7, written);
  EXPECT_EQ(tensord::fixtures::sync_log().fault_of(unfinished, (folder_ / "checkpoint-7").string(), {unfinished}), "");
  for (const char* name : {"model.pt", "state.pt", "curve.json", "manifest.json"}) {
    const std::string file = unfinished + "/" + name;
    std::string temporary;
    for (const std::string& event : tensord::fixtures::sync_log().events) {
      if (event.starts_with("rename " + file + ".") && event.ends_with(" " + file)) {
        temporary = event.substr(7, event.size() - file.size() - 8);
      }
    }
    EXPECT_EQ(tensord::fixtures::sync_log().fault_of(temporary, file, {temporary}), "") << name;
  }
}

TEST_F(CheckpointTest, ADamagedOneIsPassedOverAndReplaced) {
  const Checkpoints checkpoints(folder_, 3);
  checkpoints.write(1, files(1));
  checkpoints.write(2, files(2));
  for (const char* file : {"model.pt", "state.pt", "curve.json", "manifest.json"}) {
    checkpoints.write(3, files(3));
    ASSERT_EQ(checkpoints.newest()->step, 3);
    change_a_byte(folder_ / "checkpoint-3" / file);
    EXPECT_EQ(checkpoints.newest()->step, 2) << file;
  }
  fs::remove(folder_ / "checkpoint-2" / "model.pt");
  EXPECT_EQ(checkpoints.newest()->step, 1);
  checkpoints.write(3, files(3));
  EXPECT_EQ(checkpoints.newest()->step, 3);
}

TEST_F(CheckpointTest, AManifestThatDoesNotFitIsPassedOver) {
  const Checkpoints checkpoints(folder_, 3);
  checkpoints.write(1, files(1));
  checkpoints.write(2, files(2));
  const fs::path manifest = folder_ / "checkpoint-2" / "manifest.json";
  std::stringstream text;
  text << std::ifstream(manifest).rdbuf();
  const auto newest_with = [&](const std::string& from, const std::string& to) {
    std::string changed = text.str();
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) changed.replace(at, from.size(), to);
    std::ofstream(manifest) << changed;
    return checkpoints.newest()->step;
  };
  EXPECT_EQ(newest_with("\"step\": 2", "\"step\": 2"), 2);
  EXPECT_EQ(newest_with("\"step\": 2", "\"step\": 3"), 1);
  EXPECT_EQ(newest_with("\"format\": 1", "\"format\": 0"), 1);
  EXPECT_EQ(newest_with("\"size_bytes\": 100", "\"size_bytes\": 99"), 1);
  EXPECT_EQ(newest_with("\"crc32\": ", "\"crc32\": 1"), 1);
  EXPECT_EQ(newest_with("model.pt", "other.pt"), 1);
  EXPECT_EQ(newest_with("{", "["), 1);
  EXPECT_EQ(newest_with("\"step\": 2", "\"step\": \"2\""), 1);
}

// A job must not begin anew, or go back, because its daemon is older than its checkpoint.
TEST_F(CheckpointTest, OneOfANewerDaemonStays) {
  const Checkpoints checkpoints(folder_, 1);
  checkpoints.write(2, files(2));
  const fs::path manifest = folder_ / "checkpoint-2" / "manifest.json";
  std::ofstream(manifest) << R"({"format": 2, "pieces": []})";
  const Error error = error_of([&] { checkpoints.newest(); });
  EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
  EXPECT_THAT(error.what(), ::testing::HasSubstr("checkpoint-2: of a newer tensord (format 2; this one reads 1)"));
  EXPECT_EQ(error_of([&] { checkpoints.write(2, files(2)); }).code(), ErrorCode::kUnimplemented);
  EXPECT_TRUE(fs::exists(folder_ / "checkpoint-2" / "model.pt"));
}

TEST_F(CheckpointTest, OneOfThisStepThatIsWholeStays) {
  const Checkpoints checkpoints(folder_, 3);
  checkpoints.write(1, files(1, 100));
  checkpoints.write(1, files(1, 200));
  EXPECT_EQ(fs::file_size(folder_ / "checkpoint-1" / "model.pt"), 100);
  change_a_byte(folder_ / "checkpoint-1" / "model.pt");
  checkpoints.write(1, files(1, 200));
  EXPECT_EQ(fs::file_size(folder_ / "checkpoint-1" / "model.pt"), 200);
  checkpoints.write(0, files(0, 0));  // an empty file and the smallest step
  EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{0, 1}));
  fs::remove_all(folder_ / "checkpoint-1");
  EXPECT_EQ(checkpoints.newest()->step, 0);
}

TEST_F(CheckpointTest, OtherFoldersAreNoCheckpoints) {
  const Checkpoints checkpoints(folder_, 3);
  checkpoints.write(7, files(7));
  for (const char* name : {"checkpoint-", "checkpoint--1", "checkpoint-1x", "checkpoint-x", "checkpoints-8", "9",
                           "checkpoint-99999999999999999999"}) {
    fs::create_directory(folder_ / name);
  }
  EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{7}));
  EXPECT_EQ(checkpoints.newest()->step, 7);
  EXPECT_EQ(checkpoints.newest_unchecked()->step, 7);
}

TEST_F(CheckpointTest, AFolderThatCannotBeMadeIsAnError) {
  const fs::path gone = folder_ / "job";
  fs::create_directory(gone);
  const Checkpoints checkpoints(gone, 3);
  std::ofstream(gone / "checkpoint-2") << "a file where the folder should be";
  checkpoints.write(2, files(2));  // is being removed
  EXPECT_EQ(checkpoints.newest()->step, 2);
  Checkpoints::Files files_in_the_way = files(3);
  files_in_the_way.save_model = [&, own = files_in_the_way.save_model](const std::string& path) {
    own(path);
    fs::create_directories(gone / "checkpoint-3" / "other");  // appears unexpectedly while it writes
  };
  try {
    checkpoints.write(3, files_in_the_way);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_NE(std::string(error.what()).find("cannot be made"), std::string::npos) << error.what();
  }
  fs::remove_all(gone / "checkpoint-3");
  EXPECT_EQ(checkpoints.newest()->step, 2);
}

TEST_F(CheckpointTest, AWriteThatFailsLeavesTheOthers) {
  const Checkpoints checkpoints(folder_, 2);
  checkpoints.write(1, files(1));
  Checkpoints::Files broken = files(2);
  broken.save_model = [](const std::string&) { fail(ErrorCode::kResourceExhausted, "disk full"); };
  EXPECT_THROW(checkpoints.write(2, broken), Error);
  EXPECT_EQ(checkpoints.newest()->step, 1);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(CheckpointTest, AFullDiskIsAnErrorOfItsOwn) {
  const Checkpoints checkpoints(folder_, 2);
  checkpoints.write(1, files(1));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 64, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  ErrorCode code = ErrorCode::kInternal;
  try {
    checkpoints.write(2, files(2, 10));
  } catch (const Error& error) {
    code = error.code();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(checkpoints.newest()->step, 1);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(CheckpointTest, AManifestOfOtherKindsIsPassedOver) {
  const Checkpoints checkpoints(folder_, 3);
  checkpoints.write(1, files(1));
  checkpoints.write(2, files(2));
  const fs::path manifest = checkpoints.newest()->folder / "manifest.json";
  for (const char* text :
       {R"({"format": 1, "step": []})", R"({"format": "1", "step": 2})", R"({"format": 1, "step": 2, "files": 5})",
        R"({"format": 1, "step": 2, "files": {"model.pt": []}})",
        R"({"format": 1, "step": 2, "files": {"model.pt": {"size_bytes": "9"}}})"}) {
    std::ofstream(manifest) << text;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(checkpoints.newest()->step, 1) << text;
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("manifest.json: damaged")) << text;
  }
}

// A damaged checkpoint has a later step than the resumed job.
TEST_F(CheckpointTest, WhatIsWrittenAfterADamagedOneStays) {
  for (const int64_t keep : {1, 2}) {
    const fs::path folder = folder_ / std::to_string(keep);
    fs::create_directory(folder);
    const Checkpoints checkpoints(folder, keep);
    for (const int64_t step : {50, 90, 100}) checkpoints.write(step, files(step));
    for (const int64_t step : checkpoints.steps()) change_a_byte(folder / concat("checkpoint-", step) / "model.pt");
    EXPECT_FALSE(checkpoints.newest());
    for (const int64_t step : {10, 20, 30}) {
      checkpoints.write(step, files(step));
      ASSERT_TRUE(checkpoints.newest()) << keep << " " << step;
      EXPECT_EQ(checkpoints.newest()->step, step);
      EXPECT_LE(checkpoints.steps().size(), static_cast<size_t>(keep));
    }
  }
}

// That is not a reason to start over.
TEST_F(CheckpointTest, OneThatCannotBeMappedIsNotDamaged) {
  constexpr size_t kModelBytes = size_t{64} << 20;
  const Checkpoints checkpoints(folder_, 2);
  Checkpoints::Files large = files(2);
  large.save_model = [](const std::string& path) {
    std::ofstream(path).put('m');
    fs::resize_file(path, kModelBytes);
  };
  checkpoints.write(1, files(1));
  checkpoints.write(2, large);
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit small = before;
  small.rlim_cur = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + kModelBytes / 2;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &small), 0);
  const Error error = error_of([&] { checkpoints.newest(); });
  setrlimit(RLIMIT_AS, &before);
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted) << error.what();
  EXPECT_EQ(checkpoints.newest()->step, 2);
}

TEST_F(CheckpointTest, WithoutFilesNoneIsPassedOver) {
  const Checkpoints checkpoints(folder_, 2);
  checkpoints.write(1, files(1));
  checkpoints.write(2, files(2));
  {
    const tensord::fixtures::FewFiles none(0);
    EXPECT_ANY_THROW(checkpoints.newest());
    EXPECT_ANY_THROW(checkpoints.write(3, files(3)));
  }
  EXPECT_EQ(checkpoints.newest()->step, 2);
  EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(entries(), 2u);
}

// Otherwise the daemon would crash when it touches the missing pages.
TEST_F(CheckpointTest, OneThatIsCutOffWhileItIsReadIsPassedOver) {
  const Checkpoints checkpoints(folder_, 2);
  checkpoints.write(1, files(1));
  checkpoints.write(2, files(2, 100'000));
  cut_when_mapped = fs::canonical(folder_ / "checkpoint-2" / "model.pt");
  EXPECT_EQ(checkpoints.newest()->step, 1);
  EXPECT_EQ(cut_when_mapped, "");
  EXPECT_EQ(fs::file_size(folder_ / "checkpoint-2" / "model.pt"), 0);
}

TEST_F(CheckpointTest, WhatIsNoFileIsPassedOver) {
  const Checkpoints checkpoints(folder_, 2);
  checkpoints.write(1, files(1));
  for (const char* name : {"model.pt", "state.pt", "curve.json", "manifest.json"}) {
    checkpoints.write(2, files(2));
    const fs::path file = folder_ / "checkpoint-2" / name;
    fs::remove(file);
    fs::create_symlink(folder_ / "nothing", file);
    EXPECT_EQ(checkpoints.newest()->step, 1) << name << ": a link that leads nowhere";
    fs::remove(file);
    fs::create_symlink(file, file);
    EXPECT_EQ(checkpoints.newest()->step, 1) << name << ": a link to itself";
    checkpoints.write(2, files(2));
    EXPECT_EQ(checkpoints.newest()->step, 2) << name;
    fs::remove(file);
    fs::create_directory(file);
    if (file.filename() == "manifest.json") {
      EXPECT_EQ(error_of([&] { checkpoints.newest(); }).code(), ErrorCode::kUnavailable);
      fs::remove(file);
    }
    EXPECT_EQ(checkpoints.newest()->step, 1) << name << ": a folder";
  }
}

TEST_F(CheckpointTest, AJobsFolderThatIsGoneIsNamed) {
  const Checkpoints checkpoints(folder_ / "gone", 2);
  EXPECT_ANY_THROW(checkpoints.write(1, files(1)));
  EXPECT_ANY_THROW(checkpoints.newest());
  const JobStore store(folder_.string());
  JobStatus status;
  status.id = store.make_job("name");
  fs::remove_all(store.job_folder(status.id));
  const Error error = error_of([&] { store.save(status); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_NE(std::string(error.what()).find("job.json: cannot be written: No such file"), std::string::npos);
  fs::remove_all(folder_ / "uploads");
  EXPECT_EQ(error_of([&] { store.make_upload(""); }).code(), ErrorCode::kUnavailable);
  fs::remove_all(folder_ / "jobs");
  EXPECT_EQ(error_of([&] { store.make_job("name"); }).code(), ErrorCode::kUnavailable);
}

TEST_F(CheckpointTest, WhatACrashLeftIsSweptUp) {
  fs::create_directories(folder_ / ".checkpoint-7");
  const Checkpoints checkpoints(folder_, 2);
  EXPECT_FALSE(checkpoints.newest());
  checkpoints.write(8, files(8));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(CheckpointTest, JobsAreOnTheDiskBeforeTheyAreKnown) {
  const JobStore store(folder_.string());
  tensord::fixtures::sync_log().clear();
  JobStatus status;
  status.id = store.make_job("name");
  store.save(status);
  auto& log = tensord::fixtures::sync_log();
  EXPECT_GE(log.last("sync " + (folder_ / "jobs").string()), 0);
  EXPECT_GE(log.last("sync " + store.job_folder(status.id).string()), 0);
}

JobStatus status_of(const std::string& id, int64_t created) {
  JobStatus status;
  status.id = id;
  status.created_at_ms = created;
  return status;
}

// Its checkpoints are in the same folder.
TEST_F(CheckpointTest, AJobWhoseFileCannotBeReadIsNotSweptUp) {
  const JobStore store(folder_.string());
  for (const char* id : {"link", "folder", "itself"}) {
    fs::create_directory(store.job_folder(id));
    Checkpoints(store.job_folder(id), 2).write(1, files(1));
  }
  const auto job_file = [&](const char* id) { return store.job_folder(id) / "job.json"; };
  fs::create_symlink(folder_ / "nothing", job_file("link"));
  fs::create_directory(job_file("folder"));
  fs::create_symlink(job_file("itself"), job_file("itself"));
  EXPECT_TRUE(store.load().empty());
  for (const char* id : {"link", "folder", "itself"}) {
    const fs::path aside = folder_ / "unreadable" / id;
    ASSERT_TRUE(fs::exists(aside)) << id;
    EXPECT_EQ(Checkpoints(aside, 2).newest()->step, 1) << id;
  }
}

TEST_F(CheckpointTest, AFullDiskLeavesAJobAsItWas) {
  const JobStore store(folder_.string());
  JobStatus status = status_of(store.make_job("name"), 1);
  store.save(status);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 64, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  status.created_at_ms = 2;
  const Error error = error_of([&] { store.save(status); });
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  ASSERT_EQ(store.load().size(), 1u);
  EXPECT_EQ(store.load()[0].created_at_ms, 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(store.job_folder(status.id)), fs::directory_iterator()), 1);
}

TEST_F(CheckpointTest, JobsAreKept) {
  std::string first, second;
  {
    const JobStore store(folder_.string());
    first = store.make_job("my model/№1");
    second = store.make_job("my model/№1");
    EXPECT_NE(first, second);
    EXPECT_TRUE(first.starts_with("my-model-"));
    store.save(status_of(first, 2));
    store.save(status_of(second, 1));
    fs::create_directory(store.job_folder("half-made"));
    fs::create_directory(store.job_folder("broken"));
    std::ofstream(store.job_folder("broken") / "job.json") << "{";
    EXPECT_THROW(JobStore(folder_.string()), Error);  // two daemons on one folder
  }
  const JobStore store(folder_.string());
  const std::vector<JobStatus> jobs = store.load();
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].id, second);
  EXPECT_EQ(jobs[1].id, first);
  EXPECT_FALSE(fs::exists(store.job_folder("half-made")));
  EXPECT_FALSE(fs::exists(store.job_folder("broken")));
  EXPECT_TRUE(fs::exists(folder_ / "unreadable" / "broken" / "job.json"));
  store.remove(first);
  EXPECT_EQ(store.load().size(), 1u);
}

}  // namespace
}  // namespace tensord::server::training_checkpoint_test
