// Files that come from clients and go to them: uploads, and models that jobs made.
#include <algorithm>

#include "core/base/ascii.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/files/table.h"
#include "core/jit/archive/model_archive.h"
#include "core/jit/importers/format.h"
#include "core/jit/runtime/module.h"
#include "core/tensor/memory/owner_limit.h"
#include "server/training/checkpoint.h"
#include "server/training/data/batch_source.h"
#include "server/training/data/data_file.h"
#include "server/training/jobs/job_origin.h"
#include "server/training/training_service.h"
#include "server/training/weights_update.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

// Limits of uploads that no job uses: their number, and their total size in units of the largest upload. A new upload
// replaces the least recently written one.
constexpr size_t kMaxUploads = 32;
constexpr uint64_t kFullUploads = 4;
constexpr int kMaxDownloads = 4;

// Longer than what make_upload() makes.
constexpr size_t kMaxUploadId = 64;

// Formats of data files that jobs read.
constexpr const char* kDataFormats[] = {"npz", "safetensors", "pt", "csv", "requests", "zip"};

// ".csv" of "My file.CSV".
std::string upload_ending(const std::string& name) {
  const std::string format = files::extension_of(name);
  const bool is_known = std::ranges::find(kDataFormats, format) != std::end(kDataFormats);
  check(is_known, "file_name: '", name,
        "' is of no kind that jobs read; .npz, .safetensors, .pt, .csv, .requests and .zip (of images) are");
  return "." + format;
}

// A running job removes weights that it has replaced, at any time; a link keeps them. `find` gives the file that is the
// newest now and is asked again if that has gone. Returns false if it gives none.
bool keep_newest(const std::function<fs::path()>& find, const fs::path& link) {
  constexpr int kTries = 100;
  for (int i = 0;; ++i) {
    const fs::path file = find();
    if (file.empty()) return false;
    try {
      link_or_copy(file, link);
      return true;
    } catch (const Error&) {
      if (i == kTries || fs::exists(file)) throw;
    }
  }
}

// Of a job that goes on, a checkpoint may go while it is checked, and a newer one is there then. A damaged one stays.
std::optional<Checkpoints::Found> newest_of(const Checkpoints& checkpoints) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const std::vector<int64_t> before = checkpoints.steps();
    std::optional<Checkpoints::Found> newest = checkpoints.newest();
    if (newest || checkpoints.steps() == before) return newest;
  }
  return std::nullopt;
}

// The upload's id in a file's name of a spec. Only what make_upload() makes.
std::string upload_id_of(const std::string& file, const char* field) {
  const std::string id = file.substr(std::string_view(kUploadMark).size());
  const bool is_plain = id.starts_with("upload-") && id.size() <= kMaxUploadId &&
                        std::ranges::all_of(id, [](char c) { return is_ascii_alnum(c) || c == '-' || c == '.'; });
  check(is_plain, field, ": '", file, "' is no uploaded file");
  return id;
}

}  // namespace

std::string TrainingService::data_path(const std::string& file, const std::string& owner, const char* field) const {
  if (file.empty()) return {};
  if (!is_upload(file)) return resolve_data_file(options_.data_folder, file, field);
  const fs::path path = store_.upload_file(owner, upload_id_of(file, field));
  if (!fs::is_regular_file(fs::symlink_status(path))) {
    fail(ErrorCode::kNotFound, field, ": there is no upload '", file, "'; unused ones are removed after a day");
  }
  return path.string();
}

TrainingService::DataPaths TrainingService::data_paths(const JobSpec& spec, const std::string& owner) const {
  return {data_path(spec.data.file, owner, "data.file"), data_path(spec.evaluation.file, owner, "evaluation.file")};
}

std::string TrainingService::data_folder_of(const TrainingJob& job) const {
  const JobSpec& spec = job.spec();
  const bool has_uploads = is_upload(spec.data.file) || is_upload(spec.evaluation.file);
  return has_uploads ? (store_.job_folder(job.id()) / "data").string() : options_.data_folder;
}

void TrainingService::keep_data(const JobStatus& job, const DataPaths& paths) const {
  const fs::path folder = store_.job_folder(job.id) / "data";
  for (const auto& [file, path] :
       {std::pair(job.spec.data.file, paths.training), std::pair(job.spec.evaluation.file, paths.evaluation)}) {
    if (!is_upload(file) || fs::exists(folder / file)) continue;
    make_folder(folder);
    link_or_copy(path, folder / file);
  }
}

TrainingService::Upload::Upload(const TrainingService& service, uint64_t announced_bytes, const std::string& data_name,
                                std::string owner)
    : service_(service), owner_(std::move(owner)), announced_bytes_(announced_bytes), is_data_(!data_name.empty()) {
  const std::string ending = is_data_ ? upload_ending(data_name) : std::string();
  const uint64_t limit = service_.options_.max_upload_bytes;
  if (limit > 0 && announced_bytes > limit) {
    fail(ErrorCode::kResourceExhausted, "size_bytes: the server takes uploads of at most ", limit, " bytes, got ",
         announced_bytes);
  }
  // Without a limit on uploads, the store has none either.
  service_.store_.make_room_for_upload(owner_, kMaxUploads, std::min(limit, UINT64_MAX / kFullUploads) * kFullUploads,
                                       limit);
  id_ = service_.store_.make_upload(owner_, ending);
  file_.open(service_.store_.upload_file(owner_, id_), std::ios::binary | std::ios::trunc);
}

TrainingService::Upload::~Upload() {
  if (is_finished_) return;
  file_.close();
  std::error_code ignored;
  fs::remove(service_.store_.upload_file(owner_, id_), ignored);
}

void TrainingService::Upload::write(std::string_view bytes) {
  size_bytes_ += bytes.size();
  const uint64_t limit = service_.options_.max_upload_bytes;
  if (limit > 0 && size_bytes_ > limit) {
    fail(ErrorCode::kResourceExhausted, "data: the server takes uploads of at most ", limit, " bytes");
  }
  check(announced_bytes_ == 0 || size_bytes_ <= announced_bytes_, "data: more than the ", announced_bytes_,
        " bytes that were announced");
  check_is_there();
  if (is_data_) digest_.add(bytes);
  file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file_) fail(ErrorCode::kResourceExhausted, "the upload cannot be written; the disk may be full");
}

// A newer upload may have taken its place.
void TrainingService::Upload::check_is_there() const {
  std::error_code ignored;
  if (!fs::exists(service_.store_.upload_file(owner_, id_), ignored)) {
    fail(ErrorCode::kResourceExhausted, "data: the upload was removed to make room for newer ones");
  }
}

std::string TrainingService::Upload::finish() {
  check(announced_bytes_ == 0 || size_bytes_ == announced_bytes_, "data: got ", size_bytes_, " bytes of the ",
        announced_bytes_, " that were announced");
  file_.close();
  if (!file_) fail(ErrorCode::kResourceExhausted, "the upload cannot be written; the disk may be full");
  check_is_there();
  if (is_data_) {
    sha256_ = digest_.finish();
    is_finished_ = true;
    return kUploadMark + id_;
  }
  // Other formats are checked when a job uses them.
  const std::string file = service_.store_.upload_file(owner_, id_).string();
  try {
    if (jit::find_format(file) == nullptr) jit::ModelArchive::open(file);
  } catch (const Error& error) {
    throw Error(error.code(), without_folder(error.what(), fs::path(file).parent_path().string()));
  }
  is_finished_ = true;
  return id_;
}

TrainingService::Download::Place::Place(std::atomic<int>& taken) : taken(taken) {
  if (++taken <= kMaxDownloads) return;
  --taken;
  fail(ErrorCode::kResourceExhausted, "there are ", kMaxDownloads, " downloads of models already; ask again later");
}

TrainingService::Download::Download(const TrainingService& service, const std::string& id)
    : place_(service.downloads_), folder_(service.store_.make_download()) {
  try {
    const JobStatus job = service.find(id)->status();
    const fs::path published =
        service.repository_.folder_of(job.spec.publish.model) / std::to_string(job.published_version);
    step_ = published_step(job);
    if (job.published_version > 0 && fs::is_directory(published)) {
      for (const fs::directory_entry& entry : fs::directory_iterator(published)) {
        if (entry.is_regular_file()) link_or_copy(entry.path(), folder_ / entry.path().filename());
      }
    } else {
      write_weights(service, id);
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) files_.push_back(entry.path());
    std::ranges::sort(files_);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    throw;
  }
}

TrainingService::Download::~Download() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void TrainingService::Download::write_weights(const TrainingService& service, const std::string& id) {
  const JobStatus job = service.find(id)->status();
  const fs::path of_job = service.store_.job_folder(job.id);
  const fs::path base = service.store_.base_archive(job.id);
  const fs::path out = folder_ / format_file_name(base);
  const fs::path apart = folder_ / "apart.pt";
  if (job.spec.publish.when == "best" && job.progress.best_step > 0) {
    keep_newest(
        [&] {
          step_ = published_step(service.find(id)->status());
          return of_job / concat("best-", step_, ".pt");
        },
        apart);
    copy_as_base(base.string(), apart.string(), out.string());
    fs::remove(apart);
    return;
  }
  if (job.spec.ema_decay > 0) {
    fail(ErrorCode::kFailedPrecondition, "job '", job.id, "' has averages of its weights (ema_decay), which only its ",
         "published version has");
  }
  const Checkpoints checkpoints(of_job, job.spec.checkpoints.keep);
  const fs::path checkpoint = folder_ / "checkpoint.pt";
  const bool is_there = keep_newest(
      [&] {
        const std::optional<Checkpoints::Found> newest = newest_of(checkpoints);
        step_ = newest ? newest->step : 0;
        return newest ? fs::path(newest->model_file()) : fs::path();
      },
      checkpoint);
  if (!is_there) fail(ErrorCode::kFailedPrecondition, "job '", job.id, "' has no checkpoint yet, and no model");
  // Memory of its own: the job that goes on has the limit for itself.
  static const OwnerId owner = memory_owner("job model download");
  set_owner_limit(owner, service.options_.memory_bytes);
  const MemoryOwnerScope memory(owner);
  // Checkpoints are in training mode.
  jit::LoadOptions options;
  options.for_training = true;
  const std::shared_ptr<jit::Module> module = jit::Module::load(checkpoint.string(), options);
  module->set_training(false);
  module->save(apart.string());
  copy_as_base(base.string(), apart.string(), out.string());
  fs::remove(apart);
  fs::remove(checkpoint);
}

}  // namespace tensord::server
