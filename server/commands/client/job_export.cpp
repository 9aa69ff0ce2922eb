#include "server/commands/client/job_export.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "core/base/error.h"
#include "server/training/jobs/job_json.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

constexpr const char *kEvents = "events.out.tfevents.", *kEventsEnd = ".tensord";

std::string exact(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.17g", value);
  return text;
}

// A name that stays in its folder.
std::string file_name_of(std::string name) {
  for (char& c : name) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
    if (!is_plain) c = '_';
  }
  if (name.empty() || name.front() == '.') name.insert(name.begin(), '_');
  return name;
}

void write_file(const fs::path& path, const std::string& bytes) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes << std::flush;
  if (!out) fail(ErrorCode::kUnavailable, path.string(), ": cannot be written");
}

void replace_folder(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) fail(ErrorCode::kUnavailable, folder.string(), ": cannot be replaced: ", error.message());
}

// The columns of a point, without those that are not numbers.
std::map<std::string, double> scalars(const CurvePoint& point) {
  std::map<std::string, double> out = {{"train/loss", point.loss},
                                       {"train/learning_rate", point.learning_rate},
                                       {"train/gradient_norm", point.gradient_norm},
                                       {"train/samples_per_second", point.samples_per_second},
                                       {"train/epoch", point.epoch}};
  for (const auto& [name, value] : point.metrics) out["eval/" + name] = value;
  std::erase_if(out, [](const auto& item) { return !std::isfinite(item.second); });
  return out;
}

// Milliseconds of a point between the start and the end of its job, by its step.
int64_t time_of(const JobStatus& job, const std::vector<CurvePoint>& points, const CurvePoint& point) {
  const double last = points.empty() ? 1 : std::max<double>(1, static_cast<double>(points.back().step));
  const auto whole = static_cast<double>(job.updated_at_ms - job.created_at_ms);
  return job.created_at_ms + static_cast<int64_t>(whole * static_cast<double>(point.step) / last);
}

// --- TensorBoard: records of protobuf messages (tensorflow/core/util/event.proto), each with its length and checksums.

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
      table[i] = crc;
    }
    return table;
  }();
  uint32_t crc = ~0u;
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~crc;
}

template <class T>
std::string bytes_of(T value) {
  static_assert(std::endian::native == std::endian::little);
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string record(const std::string& data) {
  const auto masked = [](std::string_view bytes) {
    const uint32_t crc = crc32c(bytes);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  };
  const std::string length = bytes_of(static_cast<uint64_t>(data.size()));
  return length + bytes_of(masked(length)) + data + bytes_of(masked(data));
}

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

// A field of bytes, of 8 or of 4 bytes, by its number.
std::string field(int number, const std::string& bytes) {
  return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string field(int number, double value) { return varint(static_cast<uint64_t>(number) << 3 | 1) + bytes_of(value); }
std::string field(int number, float value) { return varint(static_cast<uint64_t>(number) << 3 | 5) + bytes_of(value); }

std::string event(const JobStatus& job, const std::vector<CurvePoint>& points, const CurvePoint& point) {
  std::string summary;
  for (const auto& [tag, value] : scalars(point))
    summary += field(1, field(1, tag) + field(2, static_cast<float>(value)));
  const double seconds = static_cast<double>(time_of(job, points, point)) / 1e3;
  return field(1, seconds) + varint(2 << 3) + varint(static_cast<uint64_t>(point.step)) + field(5, summary);
}

// --- MLflow

std::string run_id_of(const JobStatus& job) {
  const XXH128_hash_t hash = XXH3_128bits(job.id.data(), job.id.size());
  char text[33];
  std::snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

// MLflow's numbers of a run's states.
int run_status(JobState state) {
  switch (state) {
    case JobState::kCompleted: return 3;
    case JobState::kFailed: return 4;
    case JobState::kCancelled: return 5;
    default: return 1;
  }
}

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

void write_experiment(const fs::path& folder) {
  const fs::path file = folder / "0" / "meta.yaml";
  if (fs::exists(file)) return;
  write_file(file, concat("artifact_location: ", quoted("file://" + fs::absolute(folder / "0").string()),
                          "\nexperiment_id: '0'\nlifecycle_stage: active\nname: Default\n"));
}

}  // namespace

void write_csv(std::ostream& out, const std::vector<JobStatus>& jobs,
               const std::vector<std::vector<CurvePoint>>& points) {
  std::set<std::string> metrics;
  for (const auto& of_job : points) {
    for (const CurvePoint& point : of_job) {
      for (const auto& [name, value] : point.metrics) metrics.insert(name);
    }
  }
  out << "job,step,epoch,loss,learning_rate,gradient_norm,samples_per_second";
  for (const std::string& name : metrics) out << ",eval_" << file_name_of(name);
  out << "\n";
  for (size_t i = 0; i < jobs.size(); ++i) {
    for (const CurvePoint& point : points[i]) {
      out << file_name_of(jobs[i].id) << "," << point.step;
      for (const double value :
           {point.epoch, point.loss, point.learning_rate, point.gradient_norm, point.samples_per_second})
        out << "," << exact(value);
      for (const std::string& name : metrics) {
        const auto found = point.metrics.find(name);
        out << "," << (found == point.metrics.end() ? std::string() : exact(found->second));
      }
      out << "\n";
    }
  }
}

void write_tensorboard(const std::string& folder, const JobStatus& job, const std::vector<CurvePoint>& points) {
  const fs::path of_job = fs::path(folder) / file_name_of(job.id);
  // The server chooses the id, so a folder of this name may hold other things: only older exports go.
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(of_job, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kEvents) && name.ends_with(kEventsEnd)) fs::remove(entry.path(), ignored);
  }
  const auto seconds = static_cast<double>(job.created_at_ms) / 1e3;
  std::string out = record(field(1, seconds) + field(3, std::string("brain.Event:2")));
  for (const CurvePoint& point : points) out += record(event(job, points, point));
  write_file(of_job / concat(kEvents, job.created_at_ms / 1000, kEventsEnd), out);
}

void write_mlflow(const std::string& folder, const JobStatus& job, const std::vector<CurvePoint>& points) {
  write_experiment(folder);
  const std::string id = run_id_of(job), name = job.spec.name.empty() ? job.id : job.spec.name;
  const fs::path run = fs::path(folder) / "0" / id;
  replace_folder(run);
  const bool is_over = run_status(job.state) != 1;
  write_file(run / "meta.yaml",
             concat("artifact_uri: ", quoted("file://" + (fs::absolute(run) / "artifacts").string()),
                    "\nend_time: ", is_over ? std::to_string(job.updated_at_ms) : std::string("null"),
                    "\nentry_point_name: ''\nexperiment_id: '0'\nlifecycle_stage: active\nrun_id: ", id,
                    "\nrun_name: ", quoted(name), "\nrun_uuid: ", id,
                    "\nsource_name: ''\nsource_type: 4\nsource_version: ''\nstart_time: ", job.created_at_ms,
                    "\nstatus: ", run_status(job.state), "\ntags: []\nuser_id: ''\n"));
  const nlohmann::json fields = to_json(job.spec).flatten();
  for (const auto& [path, value] : fields.items()) {
    std::string key = path.substr(1);
    std::ranges::replace(key, '/', '.');
    write_file(run / "params" / file_name_of(key), value.is_string() ? value.get<std::string>() : value.dump());
  }
  write_file(run / "tags" / "mlflow.runName", name);
  for (const auto& [tag, value] : job.spec.tags) write_file(run / "tags" / file_name_of(tag), value);
  std::map<std::string, std::string> metrics;
  for (const CurvePoint& point : points) {
    for (const auto& [tag, value] : scalars(point))
      metrics[tag] += concat(time_of(job, points, point), " ", exact(value), " ", point.step, "\n");
  }
  for (const auto& [tag, lines] : metrics) {
    const size_t slash = tag.find('/');
    write_file(run / "metrics" / tag.substr(0, slash) / file_name_of(tag.substr(slash + 1)), lines);
  }
}

}  // namespace tensord::server
