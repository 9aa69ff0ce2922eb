#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "server/training/jobs/job_status.h"

// The curves of jobs in the formats of other tools. Names that come from the server are made safe for files. All throw
// Error if a file cannot be written.
namespace tensord::server {

// One row a point: job, step, epoch, loss, learning_rate, gradient_norm, samples_per_second, and eval_NAME for each
// metric, empty where the step was not evaluated.
void write_csv(std::ostream& out, const std::vector<JobStatus>& jobs,
               const std::vector<std::vector<CurvePoint>>& points);

// FOLDER/JOB/events.out.tfevents.…, which TensorBoard opens. Points are spread evenly over the time of the job. An
// older export of the job is replaced.
void write_tensorboard(const std::string& folder, const JobStatus& job, const std::vector<CurvePoint>& points);

// A run in an MLflow tracking folder (`mlflow ui --backend-store-uri FOLDER`) with the job's fields as parameters, its
// tags, and its curves as metrics. An older export of the job is replaced.
void write_mlflow(const std::string& folder, const JobStatus& job, const std::vector<CurvePoint>& points);

}  // namespace tensord::server
