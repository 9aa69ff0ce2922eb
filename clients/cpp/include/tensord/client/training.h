#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensord/client/options.h"
#include "tensord/client/tensor.h"
#include "tensord/client/training.pb.h"

namespace tensord::client {

// Sends batches to a job with streamed data. Not thread-safe. The destructor cancels an unfinished stream.
class DataStream {
 public:
  ~DataStream();
  DataStream(DataStream&&) noexcept;

  // Sends a batch: named tensors with the same number of rows. Blocks while the job's queue is full. Throws Error if
  // the job accepts no more.
  void send(const std::vector<std::pair<std::string, Tensor>>& batch);
  // Ends the data. Returns the number of batches that the job accepted from this stream.
  int64_t complete();

  struct Impl;
  explicit DataStream(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

// Training jobs of a tensord daemon. Specifications and states are the protocol's messages, documented in
// protos/training.proto. Created by Client::training(), and keeps the connection open. Thread-safe. Calls throw Error.
class TrainingClient {
 public:
  using JobSpec = training::v1::JobSpec;
  using Job = training::v1::Job;
  using Point = training::v1::Point;
  using Host = training::v1::Host;

  Job create(const JobSpec& spec, const CallOptions& options = {});
  Job get(const std::string& id, const CallOptions& options = {});
  std::vector<Job> list(const std::string& model = {}, const CallOptions& options = {});  // empty: of all models
  // Those that have all of these tags.
  std::vector<Job> list(const std::string& model, const std::map<std::string, std::string>& tags,
                        const CallOptions& options = {});
  Job pause(const std::string& id, const CallOptions& options = {});
  Job resume(const std::string& id, const CallOptions& options = {});
  // Resumes a distributed job with this number of ranks.
  Job resume_with(const std::string& id, int world_size, const CallOptions& options = {});
  Job cancel(const std::string& id, const CallOptions& options = {});
  // Ends the training after the current step as if it were complete: it is evaluated and published by its policy.
  Job finish(const std::string& id, const CallOptions& options = {});
  void remove(const std::string& id, const CallOptions& options = {});
  // The daemons that have joined this one, by name.
  std::vector<Host> hosts(const CallOptions& options = {});
  // (withdrawn version, served version)
  std::pair<int64_t, int64_t> roll_back(const std::string& model, const CallOptions& options = {});
  // Called after each piece of some MB.
  using OnUpload = std::function<void(uint64_t sent_bytes, uint64_t size_bytes)>;
  // Uploads a model file (TorchScript, .pt2 or ONNX). Returns the id for JobSpec.model.upload_id.
  std::string upload(const std::string& path, const CallOptions& options = {}, const OnUpload& on_upload = {});

  // Uploads a file of data. `file` of the result is JobSpec.data.file, or JobSpec.evaluation.file; `sha256` is of what
  // arrived.
  struct UploadedData {
    std::string file, sha256;
  };
  UploadedData upload_data(const std::string& path, const CallOptions& options = {}, const OnUpload& on_upload = {});
  // Writes the files of the model that the job made into a folder, which must exist: the published version, otherwise
  // the best or the last weights. Returns what the server says of them; sizes and checksums are for the caller to
  // compare. What an error leaves in the folder is not complete.
  struct DownloadedFile {
    std::string name;
    uint64_t size_bytes = 0;
    std::string sha256;
  };
  std::vector<DownloadedFile> download(const std::string& id, const std::string& folder,
                                       const CallOptions& options = {});

  // Called with the current job and at each change, with its new curve points; returning false ends the watch.
  using OnChange = std::function<bool(const Job& job, const std::vector<Point>& points)>;
  // Returns the last seen state, once the job is completed, failed, cancelled or paused.
  Job watch(const std::string& id, const OnChange& on_change, int64_t after_step = 0, const CallOptions& options = {});
  Job wait(const std::string& id, const CallOptions& options = {});

  DataStream stream_data(const std::string& id, const CallOptions& options = {});

  struct Impl;
  explicit TrainingClient(std::shared_ptr<Impl> impl);

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace tensord::client
