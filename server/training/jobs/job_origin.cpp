#include "server/training/jobs/job_origin.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/read_whole_file.h"
#include "server/training/data/batch_source.h"
#include "server/training/data/image_data.h"
#include "server/training/jobs/file_fingerprint.h"
#include "server/training/jobs/job_json.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Null if there is none, because reading was interrupted.
Json json_of(const std::optional<FileFingerprint>& fingerprints) {
  return fingerprints ? Json{{"size_bytes", fingerprints->size_bytes}, {"sha256", fingerprints->sha256}} : Json();
}

// Whether those of the fields that exist have the right types.
bool is_record(const Json& json, std::initializer_list<const char*> texts, std::initializer_list<const char*> numbers) {
  if (!json.is_object()) return false;
  const auto has = [&](const char* name, auto is_right) {
    const auto found = json.find(name);
    return found == json.end() || is_right(*found);
  };
  const auto is_text = [](const Json& value) { return value.is_string(); };
  const auto is_number = [](const Json& value) { return value.is_number_integer(); };
  return std::ranges::all_of(texts, [&](const char* name) { return has(name, is_text); }) &&
         std::ranges::all_of(numbers, [&](const char* name) { return has(name, is_number); });
}

bool are_inputs(const Json& json) {
  if (!json.is_object() || !json.value("data", Json()).is_array()) return false;
  if (json.contains("base") && !is_record(json["base"], {"sha256"}, {"size_bytes"})) return false;
  return std::ranges::all_of(json["data"], [](const Json& note) {
    return is_record(note, {"use", "file", "sha256"}, {"from_step", "size_bytes"});
  });
}

Json read_inputs(const fs::path& file) {
  const std::optional<std::string> text = read_whole_file(file.string());
  // An unreadable file must not be overwritten: it records what the job was trained with.
  if (!text && fs::exists(file)) fail(ErrorCode::kUnavailable, file.string(), ": cannot be read");
  Json inputs = Json::parse(text.value_or(""), nullptr, /*allow_exceptions=*/false);
  return are_inputs(inputs) ? inputs : Json{{"data", Json::array()}};
}

// The newest record of a file, or null.
const Json* newest_of(const Json& data, const std::string& use, const std::string& file) {
  const Json* found = nullptr;
  for (const Json& note : data) {
    if (note.value("use", "") == use && note.value("file", "") == file) found = &note;
  }
  return found;
}

bool is_best(const JobStatus& job) { return job.spec.publish.when == "best" && job.progress.best_step > 0; }

}  // namespace

void JobInputs::note(const JobSpec& spec, const fs::path& base_archive, int64_t step,
                     const std::function<bool()>& is_interrupted) const {
  Json inputs = read_inputs(file());
  if (!inputs.contains("base")) {
    inputs["base"] = json_of(fingerprint_of(base_archive, is_interrupted));
    if (inputs["base"].is_null()) return;
  }
  const auto of_file = [&](const fs::path& path) { return fingerprint_of(path, is_interrupted); };
  const auto add = [&](const char* use, const std::string& name, const char* field) {
    if (name.empty()) return true;
    const fs::path path = resolve_data_file(data_folder_, name, field);
    Json fingerprints = fs::is_directory(path) ? json_of(fingerprint_of_images(path.string(), data_folder_, of_file))
                                               : json_of(of_file(path));
    if (fingerprints.is_null()) return false;
    const Json* before = newest_of(inputs["data"], use, name);
    const bool is_same = before != nullptr && before->value("sha256", "") == fingerprints["sha256"].get<std::string>();
    if (is_same) return true;
    fingerprints.update({{"use", use}, {"file", name}, {"from_step", step}});
    inputs["data"].push_back(std::move(fingerprints));
    return true;
  };
  if (!add("training", spec.data.file, "data.file")) return;
  if (!add("evaluation", spec.evaluation.file, "evaluation.file")) return;
  AtomicFile out(file().string());
  out.write(inputs.dump(2) + "\n");
  out.commit();
}

std::string JobInputs::origin_of(const JobStatus& job) const {
  const int64_t step = published_step(job);
  Json inputs = read_inputs(file());
  Json data = Json::array();
  for (const Json& note : inputs["data"]) {
    // Data that the job read after this step did not influence it.
    if (note.value("from_step", int64_t{0}) < std::max<int64_t>(step, 1)) data.push_back(note);
  }
  if (job.spec.data.streamed) data.push_back({{"use", "training"}, {"streamed", true}});
  CurvePoint measured;
  measured.metrics = published_metrics(job);
  Json origin{{"job", job.id},
              {"name", job.spec.name},
              {"base_model", job.spec.model.name},
              {"base_version", job.base_version},
              {"step", step},
              {"last_step", job.progress.step},
              {"metrics", to_json(measured).value("metrics", Json::object())},
              {"seed", job.spec.seed},
              {"data", std::move(data)},
              {"spec", to_json(job.spec)}};
  // The all-reduce algorithm determines how sums over ranks are rounded. Jobs of older daemons used the same one.
  if (job.spec.distribution.world_size > 1) origin["all_reduce"] = {{"backend", "gloo"}, {"algorithm", "ring"}};
  if (inputs.contains("base")) {
    origin["base_sha256"] = inputs["base"].value("sha256", "");
    origin["base_size_bytes"] = inputs["base"].value("size_bytes", uint64_t{0});
  }
  return origin.dump(2) + "\n";
}

int64_t published_step(const JobStatus& job) { return is_best(job) ? job.progress.best_step : job.progress.step; }

std::map<std::string, double> published_metrics(const JobStatus& job) {
  if (!is_best(job)) return job.progress.metrics;
  // Jobs of older daemons recorded only the selection metric.
  if (job.progress.best_metrics.empty()) return {{job.spec.publish.metric, job.progress.best_metric}};
  return job.progress.best_metrics;
}

}  // namespace tensord::server
