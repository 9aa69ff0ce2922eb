#include "server/training/ranks/remote_hosts.h"

#include <algorithm>
#include <thread>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/distributed/gloo/gloo_backend.h"
#include "core/distributed/hmac.h"
#include "core/jit/importers/new_weights.h"
#include "server/training/checkpoint.h"
#include "server/training/data/batch_source.h"
#include "server/training/data/image_data.h"

namespace tensord::server {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kHostLookInterval = 20ms;

std::string random_name() { return distributed::hex_of(distributed::random_bytes(16)); }

std::string hosts_text(size_t count) { return concat(count, count == 1 ? " host" : " hosts"); }

}  // namespace

// A rank on another node, as that node reports it.
class RemoteHosts::Rank final : public WorkerHandle {
 public:
  Rank(JoinedHost& host, std::string start, int64_t number, std::map<int64_t, Rank*>& registered)
      : host_(host), start_(std::move(start)), number_(number), registered_(registered) {
    registered_[number_] = this;
  }
  ~Rank() override { registered_.erase(number_); }

  const std::string& host() const override { return host_.info().name; }
  int64_t pid() const override { return pid_; }
  std::optional<std::string> read(const OnLine& on_event, const OnLine& on_output) override {
    for (const LineReport& line : std::exchange(lines_, {})) (line.is_event ? on_event : on_output)(line.line);
    return how_;
  }
  void add_fds(std::vector<pollfd>&) const override {}

  void take(const StartedReport& report) { pid_ = report.pid; }
  void take(const LineReport& report) { lines_.push_back(report); }
  void take(const EndedReport& report) { how_ = report.how; }

 private:
  JoinedHost& host_;
  const std::string start_;
  const int64_t number_;
  std::map<int64_t, Rank*>& registered_;
  int64_t pid_ = 0;
  std::vector<LineReport> lines_;
  std::optional<std::string> how_;
};

RemoteHosts::RemoteHosts(const TrainingJob& job, Options options)
    : job_(job),
      spec_(job.spec().distribution),
      options_(std::move(options)),
      start_(random_name()),
      world_size_(spec_.world_size) {}
RemoteHosts::~RemoteHosts() = default;

size_t RemoteHosts::needed(const DistributionSpec& spec, int64_t world_size) {
  if (!spec.is_wanted()) return 0;
  return static_cast<size_t>((world_size + spec.processes_per_host - 1) / spec.processes_per_host - 1);
}

bool RemoteHosts::take_hosts(int64_t world_size, const std::set<std::string>& without) {
  const size_t count = needed(spec_, world_size);
  leases_ = options_.registry->take(count, spec_.hosts, spec_.processes_per_host, without);
  if (leases_.size() != count) return false;
  world_size_ = world_size;
  return true;
}

void RemoteHosts::fail_too_few(size_t count, size_t found) const {
  fail(ErrorCode::kDeadlineExceeded, "distribution: ", count, " other ", count == 1 ? "host is" : "hosts are",
       " needed, with ", spec_.processes_per_host, " processes each; within ", spec_.join_timeout_seconds, " seconds ",
       found, " had joined and ", found == 1 ? "was" : "were", " free");
}

bool RemoteHosts::gather(const Tell& tell) {
  const size_t count = needed(spec_, spec_.world_size);
  const auto deadline = Clock::now() + std::chrono::seconds(spec_.join_timeout_seconds);
  for (std::string told; !is_interrupted();) {
    std::set<std::string> resting;
    std::string reasons;
    for (const auto& [host, reason] : options_.resting->at(Clock::now())) {
      resting.insert(host);
      reasons += "; " + reason;
    }
    if (take_hosts(spec_.world_size, resting)) break;
    const size_t found = options_.registry->free_hosts(spec_.hosts, spec_.processes_per_host, resting);
    if (Clock::now() > deadline) {
      const int64_t fewer = static_cast<int64_t>(found + 1) * spec_.processes_per_host;
      // Jobs of older daemons have no minimum.
      const bool is_enough = spec_.min_world_size > 0 && fewer >= spec_.min_world_size;
      if (is_enough && take_hosts(std::min(fewer, spec_.world_size), resting)) break;
      if (resting.empty()) fail_too_few(count, found);
    }
    const std::string text = concat("waiting for hosts: ", found, " of ", count, " have joined", reasons);
    if (text != told) tell(text);
    told = text;
    std::this_thread::sleep_for(kHostLookInterval);
  }
  if (is_interrupted()) return false;
  for (const auto& lease : leases_) lease->begin(start_);
  is_prepared_.assign(leases_.size(), false);
  ranks_.resize(leases_.size());
  return true;
}

// Returns false if interrupted.
bool RemoteHosts::find_files(std::vector<File>& files) const {
  const auto of_file = [&](const fs::path& path) {
    return options_.fingerprints->of(path, [this] { return is_interrupted(); });
  };
  const auto add = [&](const fs::path& path, const std::string& name, bool is_data) {
    const bool is_folder = is_data && fs::is_directory(path);
    const std::optional<FileFingerprint> found =
        is_folder ? fingerprint_of_images(path.string(), options_.data_folder, of_file) : of_file(path);
    if (found) files.push_back({{name, is_data, found->size_bytes, found->sha256, is_folder}, path});
    return found.has_value();
  };
  // A resumed job takes the model from the checkpoint.
  if (const auto found = Checkpoints(options_.folder, job_.spec().checkpoints.keep).newest()) {
    for (const fs::directory_entry& entry : fs::directory_iterator(found->folder)) {
      if (!entry.is_regular_file()) continue;
      if (!add(entry.path(), (found->folder.filename() / entry.path().filename()).string(), false)) return false;
    }
  } else {
    const fs::path base = options_.base_archive;
    if (!add(base, base.filename().string(), false)) return false;
    const fs::path weights = jit::weights_beside(base.string());
    if (!weights.empty() && !add(weights, weights.filename().string(), false)) return false;
  }
  const auto add_data = [&](const std::string& name, const char* field) {
    return name.empty() || add(resolve_data_file(options_.data_folder, name, field), name, true);
  };
  return add_data(job_.spec().data.file, "data.file") && add_data(job_.spec().evaluation.file, "evaluation.file");
}

bool RemoteHosts::prepare(const Tell& tell) {
  std::vector<File> files;
  if (!find_files(files)) return false;
  PrepareOrder order{.start = start_, .files = {}, .timeout_seconds = spec_.timeout_seconds};
  for (const File& file : files) {
    if (!file.wanted.is_folder) shared_.push_back(options_.registry->share(file.wanted.sha256, file.path));
    order.files.push_back(file.wanted);
  }
  for (const auto& lease : leases_) lease->host().send(order);
  tell(concat("giving ", hosts_text(leases_.size()), " the job's files"));
  for (;;) {
    if (is_interrupted()) return false;
    read();
    if (std::all_of(is_prepared_.begin(), is_prepared_.end(), [](bool done) { return done; })) break;
    std::this_thread::sleep_for(kHostLookInterval);
  }
  shared_.clear();
  tell("");
  return true;
}

std::string RemoteHosts::own_address() const {
  std::string address;
  for (const auto& lease : leases_) {
    const std::string own = distributed::own_address(lease->host().info().address, options_.interface);
    check(address.empty() || own == address, "distribution: host ", lease->host().info().name,
          " is reached by another interface (", own, ") than the others (", address,
          "); name one that reaches all with --distributed-interface");
    address = own;
  }
  return address;
}

std::vector<std::unique_ptr<WorkerHandle>> RemoteHosts::start(const RankTask& task, int64_t first) {
  std::vector<std::unique_ptr<WorkerHandle>> out;
  for (size_t i = 0; i < leases_.size(); ++i) {
    StartOrder order{.start = start_, .ranks = {}, .task = to_text(task)};
    const int64_t end = std::min(first + spec_.processes_per_host, world_size_);
    for (; first < end; ++first) {
      order.ranks.push_back(first);
      out.push_back(std::make_unique<Rank>(leases_[i]->host(), start_, first, ranks_[i]));
    }
    leases_[i]->host().send(order);
  }
  return out;
}

void RemoteHosts::take(size_t host, const HostReport& report) {
  const std::string& name = leases_[host]->host().info().name;
  if (std::holds_alternative<PreparedReport>(report)) {
    is_prepared_[host] = true;
    options_.resting->forget(name);
  }
  if (const auto* failed = std::get_if<FailedReport>(&report)) {
    const std::string message = concat("host ", name, ": ", failed->message);
    if (failed->is_disk) throw HostDiskError(failed->code, message, name);
    throw Error(failed->code, message);
  }
  const auto give = [&](const auto* said) {
    if (!said) return;
    const auto found = ranks_[host].find(said->rank);
    if (found != ranks_[host].end()) found->second->take(*said);
  };
  give(std::get_if<StartedReport>(&report));
  give(std::get_if<LineReport>(&report));
  give(std::get_if<EndedReport>(&report));
}

void RemoteHosts::read() {
  for (size_t i = 0; i < leases_.size(); ++i) {
    JoinedHost& host = leases_[i]->host();
    // The state is checked first, so that all reports are read before the node counts as lost.
    const std::string left = host.left();
    for (const HostReport& report : host.take_reports()) take(i, report);
    if (!left.empty()) fail(ErrorCode::kUnavailable, "host ", host.info().name, " was lost: ", left);
    const auto silence = std::chrono::duration_cast<std::chrono::seconds>(host.silence()).count();
    if (silence > spec_.timeout_seconds) {
      fail(ErrorCode::kUnavailable, "host ", host.info().name, " has said nothing for ", silence, " seconds");
    }
  }
}

}  // namespace tensord::server
