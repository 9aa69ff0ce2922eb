#include "server/training/hosts/host_registry.h"

#include <algorithm>
#include <fstream>

#include "core/base/ascii.h"
#include "core/base/log.h"
#include "core/base/mutex.h"

namespace tensord::server {
namespace {

using namespace std::chrono_literals;

// A node reports every half second. A node silent for longer than this gets no ranks, because a job would soon lose it.
constexpr auto kFresh = 2s;
// After this silence, another node may take the name.
constexpr auto kSilent = 10s;
// Maximum size of reports that no job has read yet; a job reads every 20 ms.
constexpr size_t kMaxReportBytes = 64 << 20;
constexpr size_t kMaxNameBytes = 253;  // of a DNS name
constexpr size_t kMaxHosts = 1024;

const std::string& start_of(const HostReport& report) {
  static const std::string none;
  return std::visit(
      [](const auto& of) -> const std::string& {
        if constexpr (requires { of.start; }) {
          return of.start;
        } else {
          return none;
        }
      },
      report);
}

size_t bytes_of(const HostReport& report) {
  constexpr size_t kOverhead = 256;
  const auto* line = std::get_if<LineReport>(&report);
  return kOverhead + (line ? line->line.size() : 0);
}

void check_info(const HostInfo& info) {
  const bool is_plain = !info.name.empty() && info.name.size() <= kMaxNameBytes &&
                        std::all_of(info.name.begin(), info.name.end(),
                                    [](char c) { return is_ascii_alnum(c) || c == '.' || c == '-' || c == '_'; });
  check(is_plain, "name: a host's name has 1 to ", kMaxNameBytes, " letters, digits, '.', '-' and '_'");
  check(info.instance.size() >= 16 && info.instance.size() <= 64, "instance: must have 16 to 64 characters");
  check(info.processes > 0, "processes: must be above 0, got ", info.processes);
}

}  // namespace

void JoinedHost::receive(HostReport report) {
  const MutexLock lock(mutex_);
  heard_ns_ = clock_.now_ns();
  if (start_.empty() || start_of(report) != start_) return;
  report_bytes_ += bytes_of(report);
  if (report_bytes_ > kMaxReportBytes) {
    fail(ErrorCode::kResourceExhausted, "host ", info_.name, " says more than is read");
  }
  reports_.push_back(std::move(report));
}

void JoinedHost::leave(const std::string& reason) {
  const MutexLock lock(mutex_);
  if (left_.empty()) left_ = reason;
}

void JoinedHost::begin(const std::string& start) {
  const MutexLock lock(mutex_);
  start_ = start;
  reports_.clear();
  report_bytes_ = 0;
}

std::vector<HostReport> JoinedHost::take_reports() {
  const MutexLock lock(mutex_);
  report_bytes_ = 0;
  return std::exchange(reports_, {});
}

std::string JoinedHost::left() const {
  const MutexLock lock(mutex_);
  return left_;
}

std::chrono::nanoseconds JoinedHost::silence() const {
  const MutexLock lock(mutex_);
  return std::chrono::nanoseconds(clock_.now_ns() - heard_ns_);
}

std::shared_ptr<JoinedHost> HostRegistry::join(HostInfo info, std::shared_ptr<HostLink> link) {
  check_info(info);
  if (info.version != version_) {
    fail(ErrorCode::kFailedPrecondition, "host ", info.name, " runs tensord ", info.version, ", and this daemon ",
         version_, ": all hosts of a job run the same");
  }
  auto host = std::make_shared<JoinedHost>(std::move(info), std::move(link), clock_);
  const std::string& name = host->info().name;
  std::shared_ptr<JoinedHost> before;
  {
    const MutexLock lock(mutex_);
    if (is_closed_) fail(ErrorCode::kUnavailable, "the server is shutting down");
    std::shared_ptr<JoinedHost>& place = hosts_[name];
    if (place && place->info().instance != host->info().instance && place->silence() < kSilent) {
      fail(ErrorCode::kAlreadyExists, "a host of the name '", name, "' has joined already, from ",
           place->info().address, "; give one of them another --host-name");
    }
    if (!place && hosts_.size() > kMaxHosts) {
      hosts_.erase(name);
      fail(ErrorCode::kResourceExhausted, "at most ", kMaxHosts, " hosts can join");
    }
    before = std::exchange(place, host);
  }
  const char* const reason = "it has joined again";
  if (before) before->leave(reason);
  if (before) before->close(Error(ErrorCode::kCancelled, reason));
  log(LogLevel::kInfo, "host joined",
      {{"host", name}, {"address", host->info().address}, {"processes", host->info().processes}});
  return host;
}

void HostRegistry::leave(const std::shared_ptr<JoinedHost>& host, const std::string& reason) {
  host->leave(reason);
  {
    const MutexLock lock(mutex_);
    std::erase_if(hosts_, [&host](const auto& entry) { return entry.second == host; });
  }
  log(LogLevel::kWarning, "host left", {{"host", host->info().name}, {"reason", reason}});
}

void HostRegistry::close() {
  std::map<std::string, std::shared_ptr<JoinedHost>> hosts;
  {
    const MutexLock lock(mutex_);
    is_closed_ = true;
    hosts = hosts_;
  }
  for (const auto& [name, host] : hosts) host->close(Error(ErrorCode::kUnavailable, "the server is shutting down"));
}

std::vector<HostRegistry::Listed> HostRegistry::hosts() const {
  const MutexLock lock(mutex_);
  std::vector<Listed> out;
  for (const auto& [name, host] : hosts_) out.push_back({host->info(), busy_.contains(host.get())});
  return out;
}

std::vector<std::shared_ptr<JoinedHost>> HostRegistry::candidates(const std::vector<std::string>& names,
                                                                  int64_t processes,
                                                                  const std::set<std::string>& without) const {
  std::vector<std::shared_ptr<JoinedHost>> out;
  const auto add = [&](const std::shared_ptr<JoinedHost>& host) TENSORD_REQUIRES(mutex_) {
    const bool is_free = !busy_.contains(host.get()) && host->silence() < kFresh && host->left().empty();
    if (is_free && !without.contains(host->info().name) && host->info().processes >= processes) out.push_back(host);
  };
  if (names.empty()) {
    for (const auto& [name, host] : hosts_) add(host);
  }
  for (const std::string& name : names) {
    if (const auto found = hosts_.find(name); found != hosts_.end()) add(found->second);
  }
  return out;
}

std::vector<std::unique_ptr<HostRegistry::Lease>> HostRegistry::take(size_t count,
                                                                     const std::vector<std::string>& names,
                                                                     int64_t processes,
                                                                     const std::set<std::string>& without) {
  const MutexLock lock(mutex_);
  const auto found = candidates(names, processes, without);
  std::vector<std::unique_ptr<Lease>> out;
  if (found.size() < count) return out;
  for (size_t i = 0; i < count; ++i) {
    out.push_back(std::make_unique<Lease>(*this, found[i]));
    busy_.insert(found[i].get());
  }
  return out;
}

size_t HostRegistry::free_hosts(const std::vector<std::string>& names, int64_t processes,
                                const std::set<std::string>& without) const {
  const MutexLock lock(mutex_);
  return candidates(names, processes, without).size();
}

HostRegistry::Lease::~Lease() {
  host_->begin("");
  if (!start_.empty()) host_->send(StopOrder{start_});
  const MutexLock lock(registry_.mutex_);
  registry_.busy_.erase(host_.get());
}

void HostRegistry::Lease::begin(const std::string& start) {
  start_ = start;
  host_->begin(start);
}

std::unique_ptr<HostRegistry::SharedFile> HostRegistry::share(const std::string& sha256,
                                                              const std::filesystem::path& file) {
  const MutexLock lock(mutex_);
  files_.emplace(sha256, file);
  return std::make_unique<SharedFile>(*this, sha256);
}

HostRegistry::SharedFile::~SharedFile() {
  const MutexLock lock(registry_.mutex_);
  registry_.files_.erase(registry_.files_.find(sha256_));
}

std::string HostRegistry::read_shared(const std::string& sha256, uint64_t offset, size_t max) const {
  std::filesystem::path file;
  {
    const MutexLock lock(mutex_);
    const auto found = files_.find(sha256);
    if (found == files_.end()) fail(ErrorCode::kNotFound, "sha256: no job that runs needs such a file");
    file = found->second;
  }
  std::ifstream in(file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  std::string piece(max, '\0');
  in.read(piece.data(), static_cast<std::streamsize>(max));
  if (!in && !in.eof()) fail(ErrorCode::kDataLoss, file.string(), ": cannot be read");
  piece.resize(static_cast<size_t>(in.gcount()));
  return piece;
}

}  // namespace tensord::server
