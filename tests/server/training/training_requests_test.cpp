// Requests to the training service: jobs in each state, other numbers of ranks, exceeded limits, uploads.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <sstream>
#include <thread>

#include "core/base/parallel.h"
#include "core/distributed/gloo/gloo_backend.h"
#include "core/tensor/memory/caching_allocator.h"
#include "server/training/training_service.h"
#include "tests/server/error_of.h"
#include "tests/server/fake_models.h"
#include "tests/server/temporary_folder.h"
#include "tests/server/training/job_files.h"
#include "tests/support/places.h"

// Pretends that this machine has eight cores.
extern "C" int sched_getaffinity(pid_t, size_t size, cpu_set_t* set) noexcept {
  CPU_ZERO_S(size, set);
  for (size_t i = 0; i < 8; ++i) CPU_SET_S(i, size, set);
  return 0;
}

namespace tensord::server::training_requests_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class TrainingRequestsTest : public ::testing::Test {
 protected:
  TrainingRequestsTest() {
    fs::create_directories(root_ / "models" / "m" / "1");
    fs::create_directories(root_ / "models" / "old" / "1");
    fs::copy_file(concat(tests_folder(), "/pt2/data/conv_torch28.pt2"), root_ / "models" / "old" / "1" / "model.pt2");
    fs::create_directories(root_ / "data");
    fixtures::save_two_classes((root_ / "models" / "m" / "1" / "model.pt").string());
    fixtures::save_rows(root_ / "data" / "rows.csv", "1,0\n2,0\n3,1\n4,0\n");
    options_.folder = (root_ / "jobs").string();
    options_.data_folder = (root_ / "data").string();
    fs::create_directories(options_.folder);
    repository_.load_all();
  }
  TrainingService& service() {
    if (!service_) service_ = std::make_unique<TrainingService>(options_, repository_, metrics_);
    return *service_;
  }
  // A job as a stopped daemon left it.
  std::string leave_job(JobState state, JobSpec spec = fixtures::two_classes_spec()) const {
    check_job_spec(spec);
    const JobStore store(options_.folder);
    JobStatus status;
    status.id = store.make_job("m");
    status.state = state;
    status.spec = std::move(spec);
    store.save(status);
    return status.id;
  }
  // The error message that the client gets.
  template <class Call>
  static std::string refusal(const Call& call, ErrorCode code) {
    const Error error = error_of(call);
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }

  const fixtures::TemporaryFolder folder_{"training_requests"};
  const fs::path root_ = folder_.path();
  TrainingService::Options options_;
  Metrics metrics_{"test"};
  Repository repository_{{.roots = {(root_ / "models").string()}, .only = {}},
                         [](const ModelFiles&, const ModelConfig&) { return fixtures::identity_model(); },
                         metrics_};
  std::unique_ptr<TrainingService> service_;
};

TEST_F(TrainingRequestsTest, WhatCanBeAskedInWhichState) {
  const std::string queued = leave_job(JobState::kQueued), paused = leave_job(JobState::kPaused),
                    completed = leave_job(JobState::kCompleted), failed = leave_job(JobState::kFailed),
                    cancelled = leave_job(JobState::kCancelled);
  EXPECT_EQ(service().pause(paused).state, JobState::kPaused);
  EXPECT_EQ(service().cancel(cancelled).state, JobState::kCancelled);
  for (const auto& [id, name] : {std::pair(completed, "COMPLETED"), {failed, "FAILED"}, {cancelled, "CANCELLED"}}) {
    EXPECT_EQ(refusal([&, id = id] { service().pause(id); }, ErrorCode::kFailedPrecondition),
              concat("training job '", id, "' is ", name, " and cannot be paused"));
  }
  for (const auto& [id, name] : {std::pair(completed, "COMPLETED"), {failed, "FAILED"}}) {
    EXPECT_EQ(refusal([&, id = id] { service().cancel(id); }, ErrorCode::kFailedPrecondition),
              concat("training job '", id, "' is ", name, " and cannot be cancelled"));
  }
  for (const auto& [id, name] : {std::pair(completed, "COMPLETED"), {queued, "QUEUED"}}) {
    EXPECT_EQ(refusal([&, id = id] { service().resume(id); }, ErrorCode::kFailedPrecondition),
              concat("training job '", id, "' is ", name, " and cannot be resumed"));
  }
  for (const std::string& id : {paused, failed, cancelled}) EXPECT_EQ(service().resume(id).state, JobState::kQueued);
  EXPECT_EQ(service().pause(queued).state, JobState::kPaused);
  EXPECT_EQ(service().cancel(queued).state, JobState::kCancelled);
}

TEST_F(TrainingRequestsTest, AnotherNumberOfRanks) {
  const auto distributed_job = [&](int64_t world_size, int64_t per_host, int64_t min_world_size = 0) {
    JobSpec spec = fixtures::two_classes_spec();
    spec.batch_size = 1000;
    spec.distribution.world_size = world_size;
    spec.distribution.processes_per_host = per_host;
    spec.distribution.min_world_size = min_world_size;
    return leave_job(JobState::kPaused, spec);
  };
  const std::string plain = leave_job(JobState::kPaused), whole = distributed_job(4, 2), few = distributed_job(4, 2, 2),
                    three = distributed_job(4, 1, 3), one_host = distributed_job(2, 2);
  EXPECT_EQ(refusal([&] { service().resume(plain, 2); }, ErrorCode::kInvalidArgument),
            concat("world_size: job '", plain, "' has no distribution"));
  EXPECT_THAT(refusal([&] { service().resume(whole, 1025); }, ErrorCode::kInvalidArgument),
              HasSubstr("distribution.world_size: must be between"));
  EXPECT_THAT(refusal([&] { service().resume(one_host, 999); }, ErrorCode::kInvalidArgument),
              HasSubstr("distribution.world_size: this server starts at most"));
  JobSpec many = fixtures::two_classes_spec();
  many.batch_size = 2000;
  many.distribution.world_size = 1000;
  many.distribution.processes_per_host = 900;
  EXPECT_THAT(refusal([&] { service().create(many); }, ErrorCode::kInvalidArgument),
              HasSubstr("distribution.processes_per_host: this server starts at most"));
  const auto resumed = [&](const std::string& id, int64_t world_size) {
    service().resume(id, world_size);
    service().pause(id);
    return service().find(id)->spec().distribution;
  };
  const auto before = service().find(whole);
  EXPECT_EQ(resumed(whole, 4).world_size, 4);
  EXPECT_EQ(service().find(whole), before);  // as many as before: the same job
  if (!distributed::has_gloo()) {
    EXPECT_THAT(refusal([&] { service().resume(whole, 8); }, ErrorCode::kUnimplemented), HasSubstr("need Gloo"));
    return;
  }
  DistributionSpec more = resumed(whole, 8);
  EXPECT_EQ(more.world_size, 8);
  EXPECT_EQ(more.processes_per_host, 2);
  EXPECT_EQ(more.min_world_size, 8);  // all of them, as before
  EXPECT_NE(service().find(whole), before);
  EXPECT_EQ(resumed(few, 8).min_world_size, 2);
  EXPECT_EQ(resumed(three, 2).min_world_size, 2);
  const DistributionSpec one = resumed(few, 1);
  EXPECT_EQ(one.world_size, 1);
  EXPECT_EQ(one.processes_per_host, 1);
  EXPECT_EQ(one.min_world_size, 0);
}

TEST_F(TrainingRequestsTest, WhatAJobIsAndWhereItsModelIs) {
  JobSpec spec = fixtures::two_classes_spec();
  EXPECT_THAT(service().create(spec).id, StartsWith("m-"));
  spec.name = "mine";
  EXPECT_THAT(service().create(spec).id, StartsWith("mine-"));
  spec.batch_size = -1;
  EXPECT_THAT(refusal([&] { service().create(spec); }, ErrorCode::kInvalidArgument), StartsWith("batch_size: "));
  spec = fixtures::two_classes_spec();
  spec.model = {.name = "", .version = 0, .upload_id = "upload-1"};
  EXPECT_EQ(refusal([&] { service().create(spec); }, ErrorCode::kNotFound),
            "model.upload_id: there is no upload 'upload-1'");
}

TEST_F(TrainingRequestsTest, AStreamSaysWhyItsJobTakesNoData) {
  JobSpec spec = fixtures::two_classes_spec();
  spec.data = {};
  spec.data.streamed = true;
  spec.epochs = 0;
  const std::string id = leave_job(JobState::kQueued, spec);
  const auto stream = service().find(id)->stream();
  service().pause(id);
  EXPECT_EQ(refusal([&] { stream->attach(); }, ErrorCode::kFailedPrecondition), "the job is PAUSED and takes no data");
}

// A job that does not run has no speed or memory; a job on several ranks has those of each rank.
TEST_F(TrainingRequestsTest, MetricsOfJobsThatRunAndThatDoNot) {
  const std::string id = leave_job(JobState::kPaused);
  const auto job = service().find(id);
  const auto values = [&](JobState state, std::vector<RankProgress> ranks) {
    job->update([&](JobStatus& status) {
      status.state = state;
      status.progress.samples_per_second = 7;
      status.progress.ranks = std::move(ranks);
    });
    std::vector<std::string> out;
    std::istringstream text(metrics_.text());
    for (std::string line; std::getline(text, line);) {
      for (const char* name : {"tensord_training_samples_per_second{", "tensord_training_memory_bytes{"}) {
        if (line.starts_with(name)) out.push_back(line.substr(line.rfind(' ') + 1));
      }
    }
    return out;
  };
  const MemoryOwnerScope owner(memory_owner("job/" + id));
  const Tensor held = Tensor::empty(Dims{1024}, DType::kFloat32);
  const std::string own = std::to_string(cpu_allocator().live_bytes_of(memory_owner("job/" + id)));
  EXPECT_NE(own, "0");
  std::vector<RankProgress> ranks(2);
  ranks[0].memory_bytes = 1000;
  ranks[1].memory_bytes = 500;
  EXPECT_THAT(values(JobState::kPaused, {}), ElementsAre("0", "0"));
  EXPECT_THAT(values(JobState::kPaused, ranks), ElementsAre("0", "0"));
  EXPECT_THAT(values(JobState::kRunning, {}), ElementsAre("7", own));
  EXPECT_THAT(values(JobState::kRunning, ranks), ElementsAre("7", "1500"));
}

TEST_F(TrainingRequestsTest, OneProcessForAJobNeedsNoGloo) {
  JobSpec spec = fixtures::two_classes_spec();
  spec.distribution.world_size = 1;
  EXPECT_EQ(service().create(spec).spec.distribution.processes_per_host, 1);
  spec.distribution.world_size = TrainingService::max_processes() + 1;
  spec.batch_size = 1000;
  EXPECT_THAT(refusal([&] { service().create(spec); }, ErrorCode::kInvalidArgument),
              HasSubstr(concat("at most ", TrainingService::max_processes(), " processes for a job")));
  --spec.distribution.world_size;
  if (distributed::has_gloo()) {
    EXPECT_EQ(service().create(spec).spec.distribution.processes_per_host, TrainingService::max_processes());
  } else {
    refusal([&] { service().create(spec); }, ErrorCode::kUnimplemented);
  }
}

TEST_F(TrainingRequestsTest, MoreJobsThanThereIsRoomFor) {
  options_.max_jobs = 1;
  JobSpec unknown = fixtures::two_classes_spec();
  unknown.model.name = "none";
  refusal([&] { service().create(unknown); }, ErrorCode::kNotFound);
  service().create(fixtures::two_classes_spec());
  EXPECT_EQ(refusal([&] { service().create(fixtures::two_classes_spec()); }, ErrorCode::kResourceExhausted),
            "there are 1 jobs already; delete some");
  // Before anything is loaded.
  refusal([&] { service().create(unknown); }, ErrorCode::kResourceExhausted);
  EXPECT_THAT(service().jobs(), SizeIs(1));
}

TEST_F(TrainingRequestsTest, TheLastRoomIsTakenOnce) {
  options_.max_jobs = 1;
  service();
  for (int round = 0; round < 3; ++round) {
    std::atomic<int> ready{0}, made{0};
    std::vector<std::thread> clients;
    for (int i = 0; i < 4; ++i) {
      clients.emplace_back([&] {
        for (++ready; ready < 4;) std::this_thread::yield();
        try {
          service().create(fixtures::two_classes_spec());
          ++made;
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted) << error.what();
        }
      });
    }
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(made, 1);
    ASSERT_THAT(service().jobs(), SizeIs(1));
    service().remove(service().jobs()[0]->id());
  }
}

TEST_F(TrainingRequestsTest, ModelsThatCannotBeSavedAreNotTrained) {
  JobSpec spec = fixtures::two_classes_spec();
  spec.model.name = "old";
  EXPECT_THAT(refusal([&] { service().create(spec); }, ErrorCode::kUnimplemented), HasSubstr("are not written"));
}

TEST_F(TrainingRequestsTest, NoJobsAreTakenAfterTheStop) {
  service().stop();
  EXPECT_EQ(refusal([&] { service().create(fixtures::two_classes_spec()); }, ErrorCode::kUnavailable),
            "the server is shutting down");
}

TEST_F(TrainingRequestsTest, ThreadsAndMemoryOfAJob) {
  options_.memory_bytes = 1 << 20;
  const ResourceSpec usual = service().create(fixtures::two_classes_spec()).spec.resources;
  EXPECT_EQ(usual.threads, std::max(1, available_cores() / 2));
  EXPECT_EQ(TrainingService::max_processes(), std::max(4, 2 * available_cores()));
  EXPECT_EQ(usual.memory_bytes, 1U << 20);
  JobSpec spec = fixtures::two_classes_spec();
  spec.resources.threads = 3;
  spec.resources.memory_bytes = 1 << 20;
  EXPECT_EQ(service().create(spec).spec.resources.threads, 3);
  spec.resources.memory_bytes = (1 << 20) + 1;
  EXPECT_EQ(refusal([&] { service().create(spec); }, ErrorCode::kInvalidArgument),
            "resources.memory_bytes: the server allows 1048576");
  service_.reset();
  options_.threads = 5;
  options_.memory_bytes = 0;
  spec.resources.threads = 0;
  const ResourceSpec given = service().create(spec).spec.resources;
  EXPECT_EQ(given.threads, 5);
  EXPECT_EQ(given.memory_bytes, (1U << 20) + 1);
}

TEST_F(TrainingRequestsTest, MetricsNameTheModelThatAJobIsFor) {
  JobSpec upload = fixtures::two_classes_spec();
  upload.model = {.name = "", .version = 0, .upload_id = "upload-1"};
  upload.publish.model = "made";
  const std::string of_upload = leave_job(JobState::kPaused, upload);
  JobSpec other = fixtures::two_classes_spec();
  other.publish.model = "made";
  const std::string of_model = leave_job(JobState::kPaused, other);
  service();
  EXPECT_THAT(metrics_.text(), HasSubstr(concat("{job_id=\"", of_upload, "\",model=\"made\"")));
  EXPECT_THAT(metrics_.text(), HasSubstr(concat("{job_id=\"", of_model, "\",model=\"m\"")));
}

class TrainingUploadsTest : public TrainingRequestsTest {
 protected:
  std::vector<std::string> files() {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(root_ / "jobs" / "uploads")) {
      out.push_back(entry.path().filename().string());
    }
    std::ranges::sort(out);
    return out;
  }
  // Like a finished upload.
  void leave_upload(const std::string& name, size_t bytes, int hours) {
    service();
    const fs::path path = root_ / "jobs" / "uploads" / name;
    std::ofstream(path) << std::string(bytes, 'u');
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }
};

TEST_F(TrainingUploadsTest, HaveAtMostTheirBytes) {
  options_.max_upload_bytes = 10;
  {
    TrainingService::Upload announced(service(), 10);
    announced.write("0123456789");
    EXPECT_EQ(announced.size_bytes(), 10U);
    TrainingService::Upload silent(service(), 0);
    silent.write("0123456789");
    EXPECT_EQ(refusal([&] { silent.write("x"); }, ErrorCode::kResourceExhausted),
              "data: the server takes uploads of at most 10 bytes");
    EXPECT_EQ(refusal([&] { TrainingService::Upload(service(), 11); }, ErrorCode::kResourceExhausted),
              "size_bytes: the server takes uploads of at most 10 bytes, got 11");
    EXPECT_THAT(files(), SizeIs(2));
  }
  EXPECT_THAT(files(), IsEmpty());  // none was finished
}

TEST_F(TrainingUploadsTest, AreAsLongAsWasAnnounced) {
  const std::string archive = [&] {
    std::ostringstream out;
    out << std::ifstream(root_ / "models" / "m" / "1" / "model.pt", std::ios::binary).rdbuf();
    return out.str();
  }();
  TrainingService::Upload whole(service(), archive.size());
  whole.write(archive);
  EXPECT_EQ(refusal([&] { whole.write("x"); }, ErrorCode::kInvalidArgument),
            concat("data: more than the ", archive.size(), " bytes that were announced"));
  TrainingService::Upload good(service(), archive.size());
  good.write(archive);
  EXPECT_THAT(files(), ::testing::Contains(good.finish()));
  TrainingService::Upload late(service(), archive.size() + 1);
  late.write(archive);
  EXPECT_EQ(refusal([&] { late.finish(); }, ErrorCode::kInvalidArgument),
            concat("data: got ", archive.size(), " bytes of the ", archive.size() + 1, " that were announced"));
  TrainingService::Upload silent(service(), 0);
  silent.write(archive);
  EXPECT_NO_THROW(silent.finish());
  TrainingService::Upload other(service(), 0);
  other.write("no archive");
  EXPECT_THROW(other.finish(), Error);
}

TEST_F(TrainingUploadsTest, TheOldestGiveWay) {
  options_.max_upload_bytes = 10;
  for (int i = 0; i < 4; ++i) leave_upload(std::string(1, static_cast<char>('a' + i)), 10, 10 - i);
  {
    const TrainingService::Upload next(service(), 1);
    EXPECT_THAT(files(), SizeIs(4));
  }
  EXPECT_EQ(files(), (std::vector<std::string>{"b", "c", "d"}));
  // Four times as much overflows.
  service_.reset();
  options_.max_upload_bytes = (uint64_t{1} << 62) + 1;
  const TrainingService::Upload large(service(), 1);
  EXPECT_THAT(files(), SizeIs(4));
}

TEST_F(TrainingUploadsTest, WithoutALimitNoneGivesWay) {
  leave_upload("a", 10, 1);
  const TrainingService::Upload next(service(), 1 << 20);
  EXPECT_THAT(files(), SizeIs(2));
}

TEST_F(TrainingUploadsTest, ADiskThatIsFull) {
  TrainingService::Upload one(service(), 0), two(service(), 0);
  two.write("short");  // still in the stream's buffer
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &none);
  const Error written = error_of([&] { one.write(std::string(1 << 20, 'u')); }),
              closed = error_of([&] { two.finish(); });
  setrlimit(RLIMIT_FSIZE, &before);
  for (const Error& error : {written, closed}) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
    EXPECT_STREQ(error.what(), "the upload cannot be written; the disk may be full");
  }
}

}  // namespace
}  // namespace tensord::server::training_requests_test
