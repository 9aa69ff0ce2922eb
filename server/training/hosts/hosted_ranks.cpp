#include "server/training/hosts/hosted_ranks.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/base/atomic_file.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "core/distributed/gloo/gloo_backend.h"
#include "server/training/data/batch_source.h"
#include "server/training/data/data_file.h"
#include "server/training/data/image_data.h"
#include "server/training/jobs/job_store.h"
#include "server/training/ranks/local_rank.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

// Timeout while no job runs.
constexpr int64_t kIdleSilenceSeconds = 30;
constexpr int64_t kMaxSilenceSeconds = 24 * 3600;
constexpr size_t kMaxFiles = 1024;

void check_start(const std::string& start) {
  const bool is_plain =
      start.size() >= 8 && start.size() <= 64 && start.find_first_not_of("0123456789abcdef") == std::string::npos;
  check(is_plain, "start: '", start.substr(0, 64), "' is not a name of a start");
}

// Resolves a path of an order, which must stay below the folder.
fs::path below(const fs::path& folder, const std::string& name) {
  const fs::path path = name;
  const bool is_plain = !name.empty() && name.size() <= 4096 && path.is_relative() &&
                        std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
  check(is_plain, "files.path: '", name.substr(0, 256), "' is not a path in a folder");
  return folder / path;
}

}  // namespace

// One start of ranks. The ranks' processes die with its thread.
class HostedRanks::Start {
 public:
  Start(HostedRanks& hosted, PrepareOrder order)
      : hosted_(hosted),
        order_(std::move(order)),
        folder_(hosted.options_.folder / order_.start),
        thread_("hosted-ranks", [this] { work(); }) {}
  ~Start() {
    {
      const MutexLock lock(mutex_);
      is_stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  const std::string& name() const { return order_.start; }
  void begin(const StartOrder& order) {
    {
      const MutexLock lock(mutex_);
      check(!begin_, "start: it has begun already");
      begin_ = order;
    }
    changed_.notify_all();
  }

 private:
  struct Running {
    int64_t rank;
    std::unique_ptr<LocalRank> link;
    bool has_ended = false;
  };

  void work() {
    try {
      prepare();
      hosted_.send_(PreparedReport{name()});
      if (const std::optional<StartOrder> order = wait_for_begin()) run(*order);
    } catch (const DiskError& error) {
      hosted_.send_(FailedReport{name(), error.code(), error.what(), true});
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCancelled) {
        hosted_.send_(FailedReport{name(), error.code(), without_folder(error.what(), hosted_.options_.data_folder)});
      }
    } catch (const std::exception& error) {
      hosted_.send_(FailedReport{name(), ErrorCode::kInternal, error.what()});
    }
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  bool is_stopped() const {
    const MutexLock lock(mutex_);
    return is_stopped_;
  }

  // Uses this server's own data files if all of them are identical; otherwise fetches all of them into the start's
  // folder.
  void prepare() {
    for (const HostFile& file : order_.files) {
      if (file.is_folder) check_own_folder(file);
    }
    const bool is_all_here = std::ranges::all_of(
        order_.files, [this](const HostFile& file) { return !file.is_data || file.is_folder || own_file(file); });
    for (const HostFile& file : order_.files) {
      if (file.is_data && is_all_here) continue;
      const fs::path to = below(file.is_data ? folder_ / "data" : folder_, file.path);
      make_folder(to.parent_path());
      if (file.is_folder) {
        link_images(own_data(file), hosted_.options_.data_folder, to);
        continue;
      }
      const std::optional<std::string> own = file.is_data ? own_file(file) : std::nullopt;
      if (own) {
        link_or_copy(*own, to);
      } else {
        hosted_.cache_.place(file, to, hosted_.fetch_, [this] { return is_stopped(); });
      }
    }
    make_folder(folder_);
    data_folder_ = is_all_here ? hosted_.options_.data_folder : (folder_ / "data").string();
  }

  std::string own_data(const HostFile& file) const {
    return resolve_data_file(hosted_.options_.data_folder, file.path, "files");
  }

  // Throws Error if this server has other images in its folder of that name than the coordinator.
  void check_own_folder(const HostFile& file) {
    const std::string path = own_data(file);
    const auto of_file = [this](const std::string& image) {
      return hosted_.known_.of(image, [this] { return is_stopped(); });
    };
    const auto own = fingerprint_of_images(path, hosted_.options_.data_folder, of_file);
    if (!own) fail(ErrorCode::kCancelled, "stopped");
    check(*own == FileFingerprint{file.size_bytes, file.sha256}, "the folder of images '", file.path,
          "' is not the same as the coordinator's; each host reads its own copy of a folder (a .zip is fetched)");
  }

  // The file of that name in this server's data folder, if its contents are the same. Also returns nullopt if the start
  // is cancelled.
  std::optional<std::string> own_file(const HostFile& file) {
    try {
      const std::string path = own_data(file);
      std::error_code error;
      if (fs::file_size(path, error) != file.size_bytes) return std::nullopt;
      const auto fingerprints = hosted_.known_.of(path, [this] { return is_stopped(); });
      return fingerprints && fingerprints->sha256 == file.sha256 ? std::optional(path) : std::nullopt;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  std::optional<StartOrder> wait_for_begin() {
    MutexLock lock(mutex_);
    changed_.wait(lock, [this]() TENSORD_REQUIRES(mutex_) { return is_stopped_ || begin_; });
    return is_stopped_ ? std::nullopt : begin_;
  }

  RankTask task_of(const StartOrder& order) const {
    const Options& options = hosted_.options_;
    const auto count = static_cast<int64_t>(order.ranks.size());
    check(count > 0 && count <= options.processes, "ranks: this host starts at most ", options.processes, ", got ",
          count);
    RankTask task = rank_task_from_text(order.task);
    task.folder = folder_.string();
    task.base_archive = JobStore::base_archive_in(folder_).string();
    task.data_folder = data_folder_;
    task.result.clear();
    task.nice = options.nice;
    if (options.memory_bytes > 0) {
      const uint64_t max = options.memory_bytes / static_cast<uint64_t>(count);
      task.memory_bytes = task.memory_bytes == 0 ? max : std::min(task.memory_bytes, max);
    }
    task.address = distributed::own_address(task.store_host, options.interface);
    return task;
  }

  void run(const StartOrder& order) {
    RankTask task = task_of(order);
    std::vector<Running> ranks;
    for (const int64_t rank : order.ranks) {
      task.rank = static_cast<int>(rank);
      ranks.push_back({rank, std::make_unique<LocalRank>(hosted_.options_.program, hosted_.options_.host, task)});
      hosted_.send_(StartedReport{name(), rank, ranks.back().link->pid()});
    }
    log(LogLevel::kInfo, "training ranks started for another host",
        {{"job", task.job.id}, {"ranks", ranks.size()}, {"address", task.address}});
    while (!is_stopped()) {
      std::vector<pollfd> fds;
      for (const Running& rank : ranks) rank.link->add_fds(fds);
      wait_for_news(fds);
      for (Running& rank : ranks) pass_on(rank, task.job.id);
    }
    log(LogLevel::kInfo, "training ranks for another host ended", {{"job", task.job.id}});
  }

  void pass_on(Running& rank, const std::string& job) {
    if (rank.has_ended) return;
    const std::optional<std::string> how = rank.link->read(
        [&](std::string_view line) {
          hosted_.send_(LineReport{name(), rank.rank, true, std::string(line)});
        },
        [&](std::string_view line) {
          log(LogLevel::kInfo, "training rank output", {{"job", job}, {"rank", rank.rank}, {"line", line}});
          hosted_.send_(LineReport{name(), rank.rank, false, std::string(line)});
        });
    if (!how) return;
    rank.has_ended = true;
    hosted_.send_(EndedReport{name(), rank.rank, *how});
  }

  HostedRanks& hosted_;
  const PrepareOrder order_;
  const fs::path folder_;
  std::string data_folder_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  std::optional<StartOrder> begin_ TENSORD_GUARDED_BY(mutex_);
  Thread thread_;  // declared last: it uses the other members
};

HostedRanks::HostedRanks(Options options, FileCache& cache, std::function<void(HostReport)> send,
                         FileCache::Fetch fetch)
    : options_(std::move(options)),
      cache_(cache),
      send_(std::move(send)),
      fetch_(std::move(fetch)),
      timeout_seconds_(kIdleSilenceSeconds) {
  std::error_code ignored;
  fs::remove_all(options_.folder, ignored);  // left by a process that was killed
}

HostedRanks::~HostedRanks() = default;

std::chrono::seconds HostedRanks::silence_limit() const { return std::chrono::seconds(timeout_seconds_); }

void HostedRanks::take(const HostOrder& order) {
  if (const auto* prepare = std::get_if<PrepareOrder>(&order)) {
    check_start(prepare->start);
    check(prepare->files.size() <= kMaxFiles, "files: more than ", kMaxFiles);
    for (const HostFile& file : prepare->files) below("", file.path);
    timeout_seconds_ = std::clamp<int64_t>(prepare->timeout_seconds, 1, kMaxSilenceSeconds);
    start_.reset();
    start_ = std::make_unique<Start>(*this, *prepare);
  } else if (const auto* begin = std::get_if<StartOrder>(&order)) {
    if (start_ && start_->name() == begin->start) start_->begin(*begin);
  } else if (const auto* stop = std::get_if<StopOrder>(&order)) {
    if (!start_ || start_->name() != stop->start) return;
    start_.reset();
    timeout_seconds_ = kIdleSilenceSeconds;
  }
}

}  // namespace tensord::server
