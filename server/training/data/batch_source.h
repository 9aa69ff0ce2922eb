#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/distributed/group/process_group.h"
#include "core/nn/data/data_loader.h"
#include "core/nn/data/dataset.h"
#include "core/ops/generator.h"
#include "server/training/data/batch_stream.h"
#include "server/training/data/data_file.h"
#include "server/training/jobs/job_spec.h"
#include "server/training/training_model.h"

namespace tensord::server {

// Provides a job's batches, one tensor per array of the model. Not thread-safe.
class BatchSource {
 public:
  enum class Next {
    kBatch,
    kEpochEnd,     // files: continue with start_epoch()
    kComplete,     // the stream has ended
    kInterrupted,  // a request for the job arrived
    kStarved,      // no client streams data any more
  };
  virtual ~BatchSource() = default;
  virtual Next next(std::vector<Tensor>& batch, const std::function<bool()>& is_interrupted) = 0;
  virtual void start_epoch() {}
  // 0: unknown.
  virtual int64_t batches_per_epoch() const { return 0; }
  // Rows of the last batch, over all ranks.
  virtual int64_t rows(std::span<const Tensor> batch) const { return batch.empty() ? 0 : batch.front().size(0); }
  // Number of batches since the start of the job; also the number of the next one.
  virtual int64_t batches() const = 0;

  virtual ops::Value state_dict() const = 0;
  virtual void load_state_dict(const ops::Value& state) = 0;
};

// The rows of a file that are trained on, and those to evaluate with.
struct JobData {
  std::unique_ptr<nn::Dataset> all;         // of the file
  std::unique_ptr<nn::Dataset> unchanged;   // the same without the random changes of training; null: as `all`
  std::unique_ptr<nn::Dataset> evaluation;  // null: none
  std::unique_ptr<nn::Dataset> training;    // null: all of them
  bool is_decoded_ahead = false;            // samples take time: other threads make the next batches meanwhile
  const nn::Dataset* to_train_on() const { return training ? training.get() : all.get(); }
};

// Reads the job's files (below `data_folder`; paths that lead out of it are refused) and keeps the arrays that the
// model takes, in its types. Throws Error naming the field and the file.
JobData read_job_data(const JobSpec& spec, const std::string& data_folder, const TrainingModel& model);
// The path of a job's file or folder. Throws Error{kNotFound} that starts with the field.
std::string resolve_data_file(const std::string& data_folder, const std::string& file, const char* field);

// `data` must outlive it, as for make_rank_source.
std::unique_ptr<BatchSource> make_file_source(const JobData& data, const JobSpec& spec, ops::Generator& generator);
// A rank's part of each batch: rows r, r + W, r + 2W … of samples kB to kB+B-1 of randperm(seed + epoch). If it has no
// rows in a batch, there are no tensors.
std::unique_ptr<BatchSource> make_rank_source(const JobData& data, const JobSpec& spec, int rank);
// `waits` is called when the job starts or stops waiting for data.
std::unique_ptr<BatchSource> make_stream_source(std::shared_ptr<BatchStream> stream, const JobSpec& spec,
                                                const TrainingModel& model, std::function<void(bool)> waits);

// Distributes rank 0's batches; each rank gets rows r, r + W, r + 2W …. `whole` is null on other ranks. The group must
// outlive it. All ranks call next() together and get the same result.
std::unique_ptr<BatchSource> make_rank_stream_source(distributed::ProcessGroup& group,
                                                     std::unique_ptr<BatchSource> whole);

}  // namespace tensord::server
