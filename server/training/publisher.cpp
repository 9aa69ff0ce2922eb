#include "server/training/publisher.h"

#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOrigin = "job.json";

void write_origin(const fs::path& folder, const std::string& origin) {
  AtomicFile file((folder / kOrigin).string());
  file.write(origin);
  file.commit();
}

// The version that this job has published already; 0 if none.
int64_t find_published(const fs::path& model_folder, const std::string& job) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(model_folder, error)) {
    std::ifstream in(entry.path() / kOrigin, std::ios::binary);
    if (!in) continue;
    const nlohmann::json origin = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
    if (!origin.is_object() || origin.value("job", "") != job) continue;
    std::string name = entry.path().filename().string();
    if (name.starts_with('.')) name.erase(0, 1);  // it was withdrawn
    int64_t number = 0;
    std::from_chars(name.data(), name.data() + name.size(), number);
    if (number > 0) return number;  // ".new-…" has no number yet
  }
  return 0;
}

}  // namespace

Publisher::Publisher(Repository& repository) : repository_(repository), thread_("publisher", [this] { work(); }) {}

Publisher::~Publisher() {
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Publisher::work() {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this]() TENSORD_REQUIRES(mutex_) { return is_stopped_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

Repository::Added Publisher::publish(const JobStatus& job, const std::string& file_name, const std::string& origin,
                                     const std::function<void(const std::string& path)>& write) {
  std::packaged_task<Repository::Added()> task([&] { return publish_here(job, file_name, origin, write); });
  std::future<Repository::Added> result = task.get_future();
  {
    const MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
  return result.get();
}

Repository::Added Publisher::publish_here(const JobStatus& job, const std::string& file_name, const std::string& origin,
                                          const std::function<void(const std::string& path)>& write) {
  const std::string& model = job.spec.publish.model;
  const bool was_served = job.spec.model.upload_id.empty() && model == job.spec.model.name;
  if (was_served && !repository_.has_model(model)) {
    fail(ErrorCode::kFailedPrecondition, "publish.model: '", model, "' was unloaded while the job ran");
  }
  if (const int64_t number = find_published(repository_.folder_of(model), job.id)) {
    return {number, repository_.is_ready(model, std::to_string(number))};
  }
  const auto write_all = [&](const fs::path& folder, const std::string& name) {
    write((folder / name).string());
    write_origin(folder, origin);
  };
  return repository_.add_version(model, write_all, file_name);
}

}  // namespace tensord::server
