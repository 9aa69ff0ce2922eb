#include "server/training/jobs/job_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

#include "core/base/ascii.h"
#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/read_whole_file.h"
#include "server/training/jobs/job_json.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMaxJobBytes = 16 << 20;
constexpr size_t kMaxIdName = 40;
// Of the folder: raised with whatever an older daemon could not read, as a new field of job.json.
constexpr int64_t kFormat = 1;
constexpr const char* kFormatFile = "format.json";

std::string random_digits() {
  static thread_local std::mt19937_64 engine{std::random_device{}()};
  std::string out;
  for (int i = 0; i < 6; ++i) out += "0123456789abcdef"[engine() % 16];
  return out;
}

// Replaces characters of a job's name that folder names should not contain.
std::string plain(const std::string& name) {
  std::string out;
  for (const char c : name.substr(0, kMaxIdName)) out += is_ascii_alnum(c) || c == '_' ? c : '-';
  return out.empty() ? "job" : out;
}

JobStatus read_job(const fs::path& file) {
  check(fs::file_size(file) <= kMaxJobBytes, file.string(), ": larger than ", kMaxJobBytes, " bytes");
  const std::optional<std::string> text = read_whole_file(file.string());
  if (!text) fail(ErrorCode::kUnavailable, file.string(), ": cannot be read");
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) fail(ErrorCode::kDataLoss, file.string(), ": no JSON");
  return job_status_from_json(json);
}

// Before anything is written there. Folders of before there was this file have format 1.
void check_format(const fs::path& folder) {
  const fs::path file = folder / kFormatFile;
  if (!fs::exists(fs::symlink_status(file))) return;
  const std::optional<std::string> text = read_whole_file(file.string());
  if (!text) fail(ErrorCode::kUnavailable, file.string(), ": cannot be read");
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const auto found = json.is_object() ? json.find("format") : json.end();
  if (!json.is_object() || found == json.end() || !found->is_number_unsigned() || *found == 0) {
    fail(ErrorCode::kDataLoss, file.string(), R"(: damaged; of this version it is {"format": )", kFormat, "}");
  }
  const auto format = found->get<uint64_t>();
  if (format > static_cast<uint64_t>(kFormat)) {
    fail(ErrorCode::kFailedPrecondition, folder.string(), ": a newer tensord wrote this training folder (format ",
         format, "; this version reads up to ", kFormat,
         "): start that version again, or name another folder; nothing was changed");
  }
}

// A folder that cannot be written now may still be read.
void write_format(const fs::path& folder) {
  if (fs::exists(fs::symlink_status(folder / kFormatFile))) return;
  try {
    AtomicFile file((folder / kFormatFile).string());
    file.write(concat(R"({"format": )", kFormat, "}\n"));
    file.commit();
  } catch (const Error& error) {
    log(LogLevel::kWarning, "the format of the training folder cannot be written", {{"reason", error.what()}});
  }
}

// Of models' files, by which they are known or told apart.
constexpr const char* kEndings[] = {".py", ".onnx", ".pt2", ".pt"};

}  // namespace

fs::path JobStore::base_archive_in(const fs::path& folder) {
  fs::path base = folder / "base.pt";
  for (const char* const ending : kEndings) {
    std::error_code error;
    const fs::path named = folder / concat("base", ending);
    if (fs::exists(named, error)) return named;
  }
  return base;
}

fs::path JobStore::new_base_archive(const std::string& id, const fs::path& file_name) const {
  const std::string ending = file_name.extension().string();
  return job_folder(id) / concat("base", std::ranges::find(kEndings, ending) != std::end(kEndings) ? ending : ".pt");
}

JobStore::JobStore(const std::string& folder)
    : jobs_(fs::path(folder) / "jobs"),
      uploads_(fs::path(folder) / "uploads"),
      unreadable_(fs::path(folder) / "unreadable"),
      downloads_(fs::path(folder) / "downloads") {
  check_format(folder);
  make_folder(jobs_);
  make_folder(uploads_);
  // Held until this process ends, even if it crashes.
  lock_ = open((fs::path(folder) / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {  // also fails if the file could not be opened
    close(lock_);
    fail(ErrorCode::kUnavailable, folder, ": another daemon uses this training folder, or it cannot be written");
  }
  write_format(folder);
  std::error_code ignored;
  fs::remove_all(downloads_, ignored);
}

JobStore::~JobStore() { close(lock_); }

std::vector<JobStatus> JobStore::load() const {
  std::vector<JobStatus> out;
  for (const fs::directory_entry& entry : fs::directory_iterator(jobs_)) {
    const fs::path file = entry.path() / "job.json";
    try {
      // Does not follow links: a dangling link's target may come back.
      if (fs::symlink_status(file).type() == fs::file_type::not_found) {
        fs::remove_all(entry.path());  // creation was interrupted
        continue;
      }
      JobStatus status = read_job(file);
      check(status.id == entry.path().filename(), file.string(), ": is of job '", status.id, "'");
      out.push_back(std::move(status));
    } catch (const std::exception& error) {
      set_aside(entry.path().filename().string(), error.what());
    }
  }
  std::ranges::sort(out, {}, [](const JobStatus& job) { return std::tie(job.created_at_ms, job.id); });
  return out;
}

std::string JobStore::make_job(const std::string& name) const {
  for (;;) {
    const std::string id = concat(plain(name), "-", random_digits());
    std::error_code error;
    if (fs::create_directory(jobs_ / id, error)) {
      sync_folder(jobs_.string());
      return id;
    }
    if (error) fail_file((jobs_ / id).string(), "made", error.value());
  }
}

void JobStore::save(const JobStatus& status) const {
  AtomicFile file((job_folder(status.id) / "job.json").string());
  file.write(to_json(status).dump(2) + "\n");
  file.commit();
}

void JobStore::remove(const std::string& id) const {
  forget(id);  // first, so that remains are removed at the next start
  std::error_code error;
  fs::remove_all(job_folder(id), error);
  if (error) fail(ErrorCode::kUnavailable, job_folder(id).string(), ": cannot be removed: ", error.message());
}

void JobStore::forget(const std::string& id) const {
  std::error_code ignored;
  fs::remove(job_folder(id) / "job.json", ignored);
}

void JobStore::set_aside(const std::string& id, const std::string& reason) const {
  std::error_code error;
  fs::create_directories(unreadable_, error);
  fs::path to = unreadable_ / id;
  for (int i = 2; fs::exists(to, error); ++i) to = unreadable_ / concat(id, "-", i);
  fs::rename(job_folder(id), to, error);
  log(LogLevel::kError, "training job cannot be read and is set aside",
      {{"folder", (error ? job_folder(id) : to).string()}, {"reason", reason}});
}

fs::path JobStore::make_download() const {
  make_folder(downloads_);
  for (;;) {
    const fs::path folder = downloads_ / concat(random_digits(), random_digits());
    std::error_code error;
    if (fs::create_directory(folder, error)) return folder;
    if (error) fail_file(folder.string(), "made", error.value());
  }
}

std::string JobStore::make_upload(const std::string& owner, const std::string& ending) const {
  if (!owner.empty()) make_folder(uploads_ / owner);
  for (;;) {
    const std::string id = concat("upload-", random_digits(), random_digits(), ending);
    const int file = open(upload_file(owner, id).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file >= 0) {
      close(file);
      return id;
    }
    if (errno != EEXIST) fail_file(upload_file(owner, id).string(), "made", errno);
  }
}

void JobStore::make_room_for_upload(const std::string& owner, size_t max_files, uint64_t max_bytes,
                                    uint64_t bytes) const {
  struct File {
    fs::file_time_type written;
    uint64_t size_bytes;
    fs::path path;
  };
  std::vector<File> files;
  std::error_code none;  // no upload of this owner yet
  for (const fs::directory_entry& entry : fs::directory_iterator(uploads_ / owner, none)) {
    std::error_code gone;
    if (!entry.is_regular_file(gone)) continue;
    const fs::file_time_type written = entry.last_write_time(gone);
    if (gone) continue;
    const uintmax_t size_bytes = entry.file_size(gone);
    if (gone) continue;
    files.push_back({written, size_bytes, entry.path()});
    bytes += size_bytes;
  }
  std::ranges::sort(files, {}, &File::written);
  size_t left = files.size();
  for (const File& file : files) {
    if (left < max_files && (max_bytes == 0 || bytes <= max_bytes)) return;
    std::error_code error;
    fs::remove(file.path, error);
    bytes -= file.size_bytes;
    --left;
    log(LogLevel::kWarning, "an upload was removed to make room", {{"file", file.path.filename().string()}});
  }
}

void JobStore::remove_uploads(int64_t older_than_seconds) const {
  const auto limit = fs::file_time_type::clock::now() - std::chrono::seconds(older_than_seconds);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(uploads_)) {
    std::error_code error;
    if (entry.is_regular_file(error) && entry.last_write_time(error) < limit && !error) fs::remove(entry.path(), error);
  }
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail_file(folder.string(), "made", error.value());
}

void link_or_copy(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_hard_link(from, to, error);
  if (error) copy_to_disk(from.string(), to.string());
}

}  // namespace tensord::server
