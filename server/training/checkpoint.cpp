#include "server/training/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/read_whole_file.h"
#include "core/jit/archive/crc32.h"
#include "core/jit/archive/torch_file.h"
#include "core/tensor/mapped_file.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "checkpoint-";
constexpr const char* kUnfinished = ".checkpoint-";
constexpr const char* kFiles[] = {"model.pt", "state.pt", "curve.json"};
constexpr int64_t kFormat = 1;  // raised with whatever an older daemon could not read

uint32_t crc_of(const fs::path& file) {
  if (fs::file_size(file) == 0) return 0;
  const auto mapped = MappedFile::open(file.string());
  const uint32_t crc = jit::crc32_of(mapped->data(), mapped->size());
  mapped->check_unchanged();
  return crc;
}

void write_file(const fs::path& path, const std::string& text) {
  AtomicFile file(path.string());
  file.write(text);
  file.commit();
}

void write_manifest(const fs::path& folder, int64_t step) {
  nlohmann::json manifest{{"format", kFormat}, {"step", step}};
  for (const char* name : kFiles) {
    manifest["files"][name] = {{"size_bytes", fs::file_size(folder / name)}, {"crc32", crc_of(folder / name)}};
  }
  write_file(folder / "manifest.json", manifest.dump(2) + "\n");
}

// Throws if a file differs from what was written; throws Json::exception if the manifest has values of the wrong type.
void check_files(const fs::path& folder, int64_t step) {
  const fs::path file = folder / "manifest.json";
  const std::optional<std::string> text = read_whole_file(file.string());
  if (!text && fs::exists(file)) fail(ErrorCode::kUnavailable, file.string(), ": cannot be read");
  const nlohmann::json manifest = nlohmann::json::parse(text.value_or(""), nullptr, /*allow_exceptions=*/false);
  const auto damaged = [&](const char* name) { fail(ErrorCode::kDataLoss, (folder / name).string(), ": damaged"); };
  if (!manifest.is_object()) damaged("manifest.json");
  const int64_t format = manifest.value("format", int64_t{0});
  if (format > kFormat) {
    fail(ErrorCode::kUnimplemented, folder.string(), ": of a newer tensord (format ", format, "; this one reads ",
         kFormat, "): run the job there, or remove this folder to go on from the checkpoint before it");
  }
  if (format != kFormat || manifest.value("step", int64_t{-1}) != step) damaged("manifest.json");
  for (const char* name : kFiles) {
    const nlohmann::json wanted =
        manifest.value("files", nlohmann::json::object()).value(name, nlohmann::json::object());
    std::error_code error;
    const uintmax_t size = fs::file_size(folder / name, error);
    if (error || wanted.value("size_bytes", uintmax_t{0}) != size) damaged(name);
    if (wanted.value("crc32", uint64_t{0}) != crc_of(folder / name)) damaged(name);
  }
}

void check_manifest(const fs::path& folder, int64_t step) {
  try {
    check_files(folder, step);
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::kDataLoss, (folder / "manifest.json").string(), ": damaged: ", error.what());
  }
}

// Throws where that cannot be found out, for want of files or memory, and of a newer daemon's: a job must not begin
// anew for that.
bool is_intact(const fs::path& folder, int64_t step) {
  if (!fs::exists(folder)) return false;
  try {
    check_manifest(folder, step);
    return true;
  } catch (const std::exception& error) {
    const auto* known = dynamic_cast<const Error*>(&error);
    if (known && known->code() != ErrorCode::kDataLoss) throw;
    log(LogLevel::kError, "checkpoint passed over", {{"step", step}, {"reason", error.what()}});
    return false;
  }
}

// The step in a checkpoint's name; negative for other names.
int64_t step_of(const std::string& name) {
  const std::string prefix = kPrefix;
  int64_t step = -1;
  if (!name.starts_with(prefix)) return -1;
  const char* end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + prefix.size(), end, step);
  return error == std::errc() && at == end ? step : -1;
}

}  // namespace

fs::path Checkpoints::folder_of(int64_t step) const { return folder_ / concat(kPrefix, step); }

std::vector<int64_t> Checkpoints::steps() const {
  std::vector<int64_t> out;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    if (const int64_t step = step_of(entry.path().filename().string()); step >= 0) out.push_back(step);
  }
  std::sort(out.begin(), out.end());
  return out;
}

void Checkpoints::write(int64_t step, const Files& files) const {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    if (entry.path().filename().string().starts_with(kUnfinished)) fs::remove_all(entry.path(), ignored);
  }
  if (is_intact(folder_of(step), step)) return;
  fs::remove_all(folder_of(step), ignored);
  const fs::path unfinished = folder_ / concat(kUnfinished, step);
  try {
    std::error_code error;
    fs::create_directory(unfinished, error);
    if (error) fail_file(unfinished.string(), "made", error.value());
    files.save_model((unfinished / kFiles[0]).string());
    jit::save_torch_file((unfinished / kFiles[1]).string(), files.state);
    write_file(unfinished / kFiles[2], files.curve);
    write_manifest(unfinished, step);
    fs::rename(unfinished, folder_of(step), error);
    if (error) fail_file(folder_of(step).string(), "made", error.value());
    sync_folder(folder_.string());
  } catch (...) {
    fs::remove_all(unfinished, ignored);
    throw;
  }
  // The new checkpoint stays whatever its step: later ones that were skipped may be damaged.
  std::vector<int64_t> others = steps();
  std::erase(others, step);
  for (size_t i = 0; i + static_cast<size_t>(keep_) <= others.size(); ++i) {
    fs::remove_all(folder_of(others[i]), ignored);
  }
}

std::optional<Checkpoints::Found> Checkpoints::newest_unchecked() const {
  const std::vector<int64_t> found = steps();
  if (found.empty()) return std::nullopt;
  return Found{found.back(), folder_of(found.back())};
}

std::optional<Checkpoints::Found> Checkpoints::newest() const {
  std::vector<int64_t> found = steps();
  for (size_t i = found.size(); i-- > 0;) {
    if (is_intact(folder_of(found[i]), found[i])) return Found{found[i], folder_of(found[i])};
  }
  return std::nullopt;
}

}  // namespace tensord::server
