#include "server/training/data/batch_source.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/nn/data/sampler.h"
#include "server/training/data/image_data.h"
#include "server/training/value_dict.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;
using ops::Value;

// How often a job that waits for data checks whether it should stop.
constexpr auto kPollInterval = std::chrono::milliseconds(20);
// Threads that decode images beside a step, each up to two batches ahead.
constexpr int64_t kMaxDecoders = 4;
// Makes the split independent of the batch order, which comes from the same seed.
constexpr uint64_t kSplitSeed = 0x5eed5eed;

std::unique_ptr<nn::Dataset> read_table(const std::string& path, const char* field, const TrainingModel& model) {
  DataTable table;
  std::vector<Tensor> columns;
  try {
    table = read_data_file(path, model.arrays());
    for (const std::string& array : model.arrays()) {
      columns.push_back(model.to_model_type(array, table.at_or_joined(array)));
    }
  } catch (const Error& error) {
    throw Error(error.code(), concat(field, ": ", error.what()));
  }
  return std::make_unique<nn::TensorDataset>(std::move(columns));
}

void split(const JobSpec& spec, JobData& data) {
  const int64_t rows = data.all->size();
  const auto held_back = static_cast<int64_t>(std::llround(spec.evaluation.fraction * static_cast<double>(rows)));
  check(held_back > 0 && held_back < rows, "evaluation.fraction: ", spec.evaluation.fraction, " of ", rows,
        " rows leaves none on one side");
  ops::Generator generator(spec.seed ^ kSplitSeed);
  nn::RandomSampler sampler(rows, &generator);
  sampler.start_epoch();
  std::vector<int64_t> order;
  while (const auto index = sampler.next()) order.push_back(*index);
  const auto middle = order.begin() + held_back;
  std::sort(order.begin(), middle);
  std::sort(middle, order.end());
  const nn::Dataset& unchanged = data.unchanged ? *data.unchanged : *data.all;
  data.evaluation = std::make_unique<nn::SubsetDataset>(unchanged, std::vector<int64_t>(order.begin(), middle));
  data.training = std::make_unique<nn::SubsetDataset>(*data.all, std::vector<int64_t>(middle, order.end()));
}

nn::DataLoaderOptions options_of(const JobData& data, const JobSpec& spec, ops::Generator& generator) {
  nn::DataLoaderOptions options;
  options.batch_size = spec.batch_size;
  options.shuffle = *spec.data.shuffle;
  options.drop_last = spec.data.drop_last;
  options.generator = &generator;
  if (data.is_decoded_ahead)
    options.workers = static_cast<int>(std::clamp<int64_t>(spec.resources.threads, 1, kMaxDecoders));
  return options;
}

class FileSource final : public BatchSource {
 public:
  FileSource(const JobData& data, const JobSpec& spec, ops::Generator& generator)
      : loader_(*data.to_train_on(), options_of(data, spec, generator)) {
    check(loader_.size() > 0, "batch_size: ", spec.batch_size, " is more than the ", data.to_train_on()->size(),
          " rows, and drop_last leaves nothing");
    loader_.start_epoch();
  }

  Next next(std::vector<Tensor>& batch, const std::function<bool()>& is_interrupted) override {
    auto found = loader_.next(is_interrupted);
    if (!found) return loader_.is_in_epoch() ? Next::kInterrupted : Next::kEpochEnd;
    batch = std::move(*found);
    ++batches_;
    return Next::kBatch;
  }
  void start_epoch() override { loader_.start_epoch(); }
  int64_t batches_per_epoch() const override { return loader_.size(); }
  int64_t batches() const override { return batches_; }

  Value state_dict() const override {
    ValueDict dict;
    dict.set("loader", loader_.state_dict());
    dict.set("batches", batches_);
    return dict.value();
  }
  void load_state_dict(const Value& state) override {
    const ValueDict dict(state);
    loader_.load_state_dict(dict.at("loader"));
    batches_ = dict.at("batches").to_int();
  }

 private:
  nn::DataLoader loader_;
  int64_t batches_ = 0;
};

class StreamSource final : public BatchSource {
 public:
  StreamSource(std::shared_ptr<BatchStream> stream, const JobSpec& spec, const TrainingModel& model,
               std::function<void(bool)> waits)
      : stream_(std::move(stream)),
        model_(model),
        waits_(std::move(waits)),
        timeout_ns_(spec.data.stream_timeout_seconds * 1'000'000'000),
        batches_(stream_->first_number()) {}

  Next next(std::vector<Tensor>& batch, const std::function<bool()>& is_interrupted) override {
    StreamedBatch streamed;
    BatchStream::Popped popped = stream_->pop(std::chrono::milliseconds(0), streamed);
    if (popped == BatchStream::Popped::kNothing) {
      const Next reason = wait(popped, streamed, is_interrupted);
      if (reason != Next::kBatch) return reason;
    }
    if (popped == BatchStream::Popped::kComplete) return Next::kComplete;
    ++batches_;
    DataTable table;
    table.arrays = std::move(streamed.arrays);
    batch.clear();
    for (const std::string& array : model_.arrays())
      batch.push_back(model_.to_model_type(array, table.at_or_joined(array)));
    return Next::kBatch;
  }
  int64_t batches() const override { return batches_; }

  Value state_dict() const override {
    ValueDict dict;
    dict.set("batches", batches_);
    return dict.value();
  }
  // The stream was created to start where the newest checkpoint ends.
  void load_state_dict(const Value& state) override {
    batches_ = ValueDict(state).at("batches").to_int();
    check_internal(batches_ == stream_->first_number(), "the stream begins with batch ", stream_->first_number(),
                   ", the checkpoint with ", batches_);
  }

 private:
  Next wait(BatchStream::Popped& popped, StreamedBatch& batch, const std::function<bool()>& is_interrupted) {
    waits_(true);
    Next reason = Next::kBatch;
    int64_t alone_since_ns = Clock::system().now_ns();
    while (popped == BatchStream::Popped::kNothing) {
      if (is_interrupted()) {
        reason = Next::kInterrupted;
        break;
      }
      const int64_t now_ns = Clock::system().now_ns();
      if (stream_->has_client()) alone_since_ns = now_ns;
      if (now_ns - alone_since_ns > timeout_ns_) {
        reason = Next::kStarved;
        break;
      }
      popped = stream_->pop(kPollInterval, batch);
    }
    waits_(false);
    return reason;
  }

  const std::shared_ptr<BatchStream> stream_;
  const TrainingModel& model_;
  const std::function<void(bool)> waits_;
  const int64_t timeout_ns_;
  int64_t batches_;
};

}  // namespace

std::string resolve_data_file(const std::string& data_folder, const std::string& file, const char* field) {
  if (data_folder.empty()) {
    fail(ErrorCode::kFailedPrecondition, field, ": the server has no data folder (--training-data)");
  }
  std::error_code error;
  const fs::path folder = fs::canonical(data_folder, error);
  if (error) fail(ErrorCode::kNotFound, field, ": the server's data folder: ", error.message());
  const fs::path path = fs::canonical(folder / file, error);
  if (error) fail(ErrorCode::kNotFound, field, ": '", file, "' is not in the data folder");
  const bool is_inside = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
  check(is_inside, field, ": '", file, "' leads out of the data folder");
  check(fs::is_regular_file(path) || fs::is_directory(path), field, ": '", file, "' is not a file");
  return path.string();
}

JobData read_job_data(const JobSpec& spec, const std::string& data_folder, const TrainingModel& model) {
  JobData data;
  const auto read = [&](const std::string& path, const char* field, bool is_for_training) {
    if (!is_image_data(path)) return read_table(path, field, model);
    try {
      return open_image_data(path, data_folder, spec, model, is_for_training);
    } catch (const Error& error) {
      throw Error(error.code(), concat(field, ": ", error.what()));
    }
  };
  if (!spec.data.streamed) {
    const std::string path = resolve_data_file(data_folder, spec.data.file, "data.file");
    data.is_decoded_ahead = is_image_data(path);
    data.all = read(path, "data.file", true);
    if (data.is_decoded_ahead && spec.evaluation.fraction > 0) data.unchanged = read(path, "data.file", false);
  }
  if (spec.evaluation.fraction > 0) split(spec, data);
  if (!spec.evaluation.file.empty()) {
    const std::string path = resolve_data_file(data_folder, spec.evaluation.file, "evaluation.file");
    data.evaluation = read(path, "evaluation.file", false);
  }
  return data;
}

std::unique_ptr<BatchSource> make_file_source(const JobData& data, const JobSpec& spec, ops::Generator& generator) {
  return std::make_unique<FileSource>(data, spec, generator);
}

std::unique_ptr<BatchSource> make_stream_source(std::shared_ptr<BatchStream> stream, const JobSpec& spec,
                                                const TrainingModel& model, std::function<void(bool)> waits) {
  return std::make_unique<StreamSource>(std::move(stream), spec, model, std::move(waits));
}

}  // namespace tensord::server
