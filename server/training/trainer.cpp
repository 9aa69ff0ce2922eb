#include "server/training/trainer.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/parallel.h"
#include "core/jit/archive/torch_file.h"
#include "core/tensor/grad_mode.h"
#include "core/tensor/memory/accounts.h"
#include "core/tensor/memory/owner_limit.h"
#include "server/training/evaluation_metrics.h"
#include "server/training/jobs/job_json.h"
#include "server/training/non_finite.h"
#include "server/training/trainer_state.h"
#include "server/training/weights_update.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

// Makes the random numbers of steps independent of those of the batch order.
constexpr uint64_t kOrderSeed = 0x0bdeb;

}  // namespace

Trainer::Trainer(TrainingJob& job, Options options)
    : job_(job),
      spec_(job.spec()),
      options_(std::move(options)),
      owner_(memory_owner("job/" + job.id())),
      checkpoints_(options_.folder, spec_.checkpoints.keep),
      generator_(spec_.seed),
      order_(spec_.seed ^ kOrderSeed) {
  set_owner_limit(owner_, options_.memory_bytes);
  const MemoryOwnerScope owner_scope(owner_);
  set_thread_budget(options_.threads);
  const std::optional<Checkpoints::Found> found = checkpoints_.newest();
  const std::string archive = found ? found->model_file() : options_.base_archive;
  const bool needs_output = EvaluationMetrics::needs_output(spec_.evaluation.metrics);
  if (options_.group != nullptr && spec_.distribution.sync_batch_norm) {
    statistics_ = std::make_unique<StatisticsGroups>(*options_.group);
  }
  model_ = std::make_unique<TrainingModel>(
      archive, spec_.loss, spec_.data.inputs, needs_output,
      statistics_ ? statistics_->operator_overrides() : decltype(statistics_->operator_overrides())(),
      device_of_job(spec_), autocast_type_of_job(spec_));
  model_->checkpoint_activations(spec_.activation_checkpointing);
  model_->use_metrics(spec_.evaluation.metrics);
  optimizer_ = make_job_optimizer(spec_.optimizer, model_->module().named_parameters());
  if (options_.group != nullptr && spec_.distribution.zero > 0) {
    zero_ = std::make_unique<nn::ZeroRedundancy>(*optimizer_, *options_.group);
  }
  parameters_ = model_->trained_parameters();
  if (spec_.loss_scale > 0) loss_scale_.emplace(spec_.loss_scale);
  if (spec_.ema_decay > 0) average_ = std::make_unique<WeightAverage>(parameters_, spec_.ema_decay);
  data_ = read_job_data(spec_, options_.data_folder, *model_);
  source_ = make_source();
  const int64_t epochs = spec_.data.streamed ? 0 : spec_.epochs;
  learning_rate_ = std::make_unique<LearningRate>(spec_.schedule, *optimizer_, total_steps(), epochs);
  if (found) {
    restore(*found);
  } else {
    job_.set_points({});
    job_.update([](JobStatus& status) { status.progress = {}; });
  }
  if (options_.group != nullptr) {
    ranks_ = std::make_unique<RankGroup>(*options_.group, parameters_, step_, spec_.distribution, compression_state_,
                                         model_->may_have_sparse_gradients());
    compression_state_ = {};
  }
  update_ = make_update();
  meter_ = std::make_unique<ProgressMeter>(job_, owner_, total_steps());
  if (ranks_) record_rank({});
  if (ranks_ && ranks_->size() > 1) record_local_operators();
  checkpoint_ns_ = Clock::system().now_ns();
}

std::unique_ptr<BatchSource> Trainer::make_source() {
  const auto of_stream = [this] {
    return make_stream_source(job_.stream(), spec_, *model_, [this](bool is_waiting) {
      if (is_waiting) meter_->flush();  // nothing else would report the progress
      job_.update([&](JobStatus& status) { status.message = is_waiting ? "waiting for data" : ""; });
    });
  };
  distributed::ProcessGroup* const group = options_.group;
  if (!group) return spec_.data.streamed ? of_stream() : make_file_source(data_, spec_, order_);
  if (!spec_.data.streamed) return make_rank_source(data_, spec_, group->rank());
  return make_rank_stream_source(*group, group->rank() == 0 ? of_stream() : nullptr);
}

std::unique_ptr<TrainingStep> Trainer::make_update() {
  return std::make_unique<TrainingStep>(
      TrainingStep::Parts{.spec = spec_,
                          .model = *model_,
                          .optimizer = *optimizer_,
                          .zero = zero_.get(),
                          .statistics = statistics_.get(),
                          .ranks = ranks_.get(),
                          .loss_scale = loss_scale_ ? &*loss_scale_ : nullptr,
                          .plans = options_.plans,
                          .is_cancelled = cancel_check(),
                          .request = [this] { return request(); },
                          .is_checkpoint_due = [this] { return checkpoint_time_is_over(); }},
      parameters_);
}

Trainer::~Trainer() { set_owner_limit(owner_, 0); }

int64_t Trainer::total_steps() const {
  const int64_t by_epochs = (source_->batches_per_epoch() + spec_.accumulation - 1) / spec_.accumulation * spec_.epochs;
  if (spec_.steps == 0) return by_epochs;
  return by_epochs == 0 ? spec_.steps : std::min(spec_.steps, by_epochs);
}

double Trainer::epoch() const {
  const int64_t batches = source_->batches_per_epoch();
  const double part = batches > 0 ? static_cast<double>(epoch_batches_) / static_cast<double>(batches) : 0;
  return static_cast<double>(epoch_) + part;
}

bool Trainer::is_complete() const {
  return is_finished_ || stream_is_complete_ || (spec_.steps > 0 && step_ >= spec_.steps) ||
         (spec_.epochs > 0 && epoch_ >= spec_.epochs);
}

std::string Trainer::warning() const {
  const std::string& of_model = model_->warning();
  return end_reason_.empty() || of_model.empty() ? end_reason_ + of_model : concat(end_reason_, "; ", of_model);
}

double Trainer::trained_seconds() const {
  return seconds_before_ + static_cast<double>(Clock::system().now_ns() - started_ns_) / 1e9;
}

JobRequest Trainer::request() const {
  const JobRequest of_client = job_.request();
  // Of several processes the first one decides.
  const bool is_over =
      is_first() && spec_.max_seconds > 0 && trained_seconds() >= static_cast<double>(spec_.max_seconds);
  return of_client == JobRequest::kNone && is_over ? JobRequest::kFinish : of_client;
}

// Whether the training ends after this step, though its length is not reached. All ranks find the same.
bool Trainer::ends_early() {
  if (step_ == 0) return false;
  const int64_t patience = spec_.evaluation.patience;
  if (patience > 0 && stale_evaluations_ >= patience) {
    end_reason_ = concat("ended early: ", spec_.publish.metric, " was not better in ", patience, " evaluations");
  } else if ((ranks_ ? agreed_ : request()) != JobRequest::kFinish) {
    return false;
  } else if (spec_.max_seconds > 0 && trained_seconds() >= static_cast<double>(spec_.max_seconds)) {
    end_reason_ = concat("ended early: after max_seconds, ", spec_.max_seconds);
  } else {
    end_reason_ = "ended early: a client finished it";
  }
  return true;
}

std::optional<Trainer::Outcome> Trainer::wanted() const {
  switch (ranks_ ? agreed_ : request()) {
    case JobRequest::kPause: return Outcome::kPaused;
    case JobRequest::kCancel: return Outcome::kCancelled;
    case JobRequest::kStop: return Outcome::kStopped;
    case JobRequest::kFinish:  // see ends_early
    case JobRequest::kNone: break;
  }
  return std::nullopt;
}

// Cancelling a job interrupts its current step.
std::function<bool()> Trainer::cancel_check() const {
  return [this] { return job_.request() == JobRequest::kCancel; };
}

Trainer::Outcome Trainer::run() {
  const MemoryOwnerScope owner_scope(owner_);
  const ops::GeneratorGuard generator(generator_);
  const ContextPart<&ExecutionContext::numerics> numerics({.is_deterministic = spec_.deterministic});
  const EnableGradGuard grad;
  model_->module().set_training(true);
  try {
    while (!is_complete()) {
      if (ends_early()) {
        is_finished_ = true;
        break;
      }
      std::optional<Outcome> outcome = wanted();
      if (!outcome) outcome = advance();
      if (!outcome) continue;
      if (*outcome != Outcome::kCancelled) checkpoint();
      meter_->flush();
      return *outcome;
    }
    if (data_.evaluation && evaluated_step_ != step_) evaluate();
    checkpoint();
  } catch (const Error& error) {
    // The error of a cancelled run.
    if (error.code() == ErrorCode::kCancelled && job_.request() == JobRequest::kCancel) return Outcome::kCancelled;
    throw;
  }
  meter_->flush();
  return Outcome::kDone;
}

// Runs one step or ends an epoch. Returns an outcome if the job has to end here.
std::optional<Trainer::Outcome> Trainer::advance() {
  std::vector<std::vector<Tensor>> batches(1);
  // A wait for the first batch goes on when only the end is wanted: there is nothing to end with.
  const auto is_interrupted = [this] { return interrupts(request()) || (step_ > 0 && request() != JobRequest::kNone); };
  switch (source_->next(batches.front(), is_interrupted)) {
    case BatchSource::Next::kBatch: break;
    case BatchSource::Next::kEpochEnd: end_epoch(); return std::nullopt;
    case BatchSource::Next::kComplete: stream_is_complete_ = true; return std::nullopt;
    case BatchSource::Next::kInterrupted:
      if (ranks_) agreed_ = ranks_->shared_request(request());
      return std::nullopt;
    case BatchSource::Next::kStarved: return Outcome::kStarved;
  }
  // A step of several batches is made whole, or not at all.
  while (std::ssize(batches) < spec_.accumulation) {
    if (source_->next(batches.emplace_back(), cancel_check()) == BatchSource::Next::kBatch) continue;
    batches.pop_back();
    break;
  }
  train(batches);
  batches.clear();
  if (data_.evaluation && spec_.evaluation.every_steps > 0 && step_ % spec_.evaluation.every_steps == 0) evaluate();
  checkpoint_if_due();
  return std::nullopt;
}

void Trainer::end_epoch() {
  ++epoch_;
  epoch_batches_ = 0;
  learning_rate_->after_epoch();
  if (data_.evaluation && spec_.evaluation.every_steps == 0) evaluate();
  if (!is_complete()) source_->start_epoch();
}

void Trainer::train(std::span<const std::vector<Tensor>> batches) {
  const int64_t number = step_ + 1;
  // A rank's seed depends only on the step, so that no generator state is saved.
  if (ranks_) generator_.set_seed(spec_.seed + static_cast<uint64_t>(step_ * ranks_->size() + ranks_->rank()));
  ProgressMeter::Step done{.step = number, .rows = 0};
  std::vector<std::vector<Tensor>> given;
  for (const std::vector<Tensor>& batch : batches) {
    done.rows += source_->rows(batch);
    given.push_back(model_->on_device(batch));
  }
  try {
    done.learning_rate = learning_rate_->current();
    const TrainingStep::Done update = update_->run(given, done.rows, meter_->wants_point(number));
    done.loss = update.loss;
    done.gradient_norm = update.is_skipped ? -1 : update.gradient_norm;
    done.is_skipped = update.is_skipped;
    record_plan(update);
    done.is_planned = update.is_planned;
    agreed_ = update.request;
    checkpoint_is_agreed_ = update.checkpoint_is_due;
  } catch (const Error& error) {
    throw Error(error.code(),
                concat("step ", number, ", batch ", source_->batches() - 1,
                       spec_.data.streamed ? std::string() : concat(" (epoch ", epoch_ + 1, ")"), ": ", error.what()));
  }
  if (average_ && !done.is_skipped) average_->update();
  if (loss_scale_) done.loss_scale = loss_scale_->value();
  step_ = number;
  epoch_batches_ += std::ssize(batches);
  learning_rate_->after_step();
  done.epoch = epoch();
  done.next_batch = spec_.data.streamed ? source_->batches() : 0;
  if (number == 1 && !warning().empty()) {
    log(LogLevel::kWarning, "training job", {{"job", job_.id()}, {"reason", warning()}});
    job_.update([this](JobStatus& status) { status.message = warning(); });
  }
  meter_->add_step(done);
  if (ranks_) record_rank(batches.front());
}

// Reported when it becomes known and when it changes.
void Trainer::record_plan(const TrainingStep::Done& update) {
  if (update.plan_reason.empty() && !update.is_planned) return;
  const std::string text = update.is_planned ? "planned" : update.plan_reason;
  if (text == plan_said_) return;
  plan_said_ = text;
  if (update.is_planned) {
    log(LogLevel::kInfo, "the steps of a training job are planned", {{"job", job_.id()}});
  } else {
    log(LogLevel::kInfo, "the steps of a training job are interpreted", {{"job", job_.id()}, {"reason", text}});
  }
}

// Logs at the start whether the result depends on the number of ranks.
void Trainer::record_local_operators() {
  const std::string found = model_->local_operators();
  const DistributionSpec& distribution = spec_.distribution;
  std::string result = "any number of ranks has the same result within rounding";
  if (!found.empty()) {
    result = concat("another number of ranks has another result: ", found, " is each rank's own");
  } else if (distribution.compression == "powersgd") {
    result = "another number of ranks has another result: powersgd keeps each rank's own errors";
  } else if (!distribution.compression.empty()) {
    result = concat("any number of ranks has the same result within the rounding of ", distribution.compression);
  }
  log(LogLevel::kInfo, "training ranks",
      {{"job", job_.id()}, {"ranks", ranks_->size()}, {"local_operators", found}, {"result", result}});
  if (found.empty() && !distribution.sync_batch_norm && distribution.compression.empty()) return;
  job_.update([&](JobStatus& status) { status.message = result; });
}

void Trainer::record_rank(std::span<const Tensor> batch) {
  own_samples_ += batch.empty() ? 0 : batch.front().size(0);
  const RankProgress own{.rank = ranks_->rank(),
                         .host = {},  // filled in by the worker group
                         .pid = getpid(),
                         .step = step_,
                         .samples = static_cast<uint64_t>(own_samples_),
                         .communication_seconds = std::chrono::duration<double>(ranks_->waited()).count(),
                         .memory_bytes = bytes_of_owner(owner_)};
  job_.update([&](JobStatus& status) { status.progress.ranks = {own}; });
}

void Trainer::check_parameters(const char* when) const {
  const std::string parameter = first_non_finite(parameters_, /*gradients=*/false);
  if (parameter.empty()) return;
  fail(ErrorCode::kFailedPrecondition, "step ", step_, ": parameter '", parameter, "' is not finite ", when);
}

// Rank 0 measures for all ranks.
void Trainer::evaluate() {
  const WeightAverage::Scope averaged(is_first() ? average_.get() : nullptr);
  std::map<std::string, double> metrics;
  if (is_first()) metrics = measure();
  if (ranks_) {
    CurvePoint point;
    point.metrics = metrics;
    point = curve_point_from_json(nlohmann::json::parse(ranks_->shared(to_json(point).dump())));
    metrics = point.metrics;
  }
  evaluated_step_ = step_;
  learning_rate_->after_evaluation(metrics);
  record_best(metrics);
  meter_->add_evaluation(step_, epoch(), metrics);
}

std::map<std::string, double> Trainer::measure() {
  // The seed depends on the step, so that the number of evaluations does not affect training.
  ops::Generator generator(spec_.seed + static_cast<uint64_t>(step_));
  const ops::GeneratorGuard generator_guard(generator);
  const NoGradGuard no_grad;
  const CancellationScope cancelled(cancel_check());  // between two images too
  model_->module().set_training(false);
  const nn::Dataset& rows = *data_.evaluation;
  EvaluationMetrics sums(spec_.evaluation.metrics, spec_.loss);
  std::vector<int64_t> indices;
  for (int64_t first = 0; first < rows.size(); first += spec_.evaluation.batch_size) {
    indices.clear();
    const int64_t end = std::min(first + spec_.evaluation.batch_size, rows.size());
    for (int64_t i = first; i < end; ++i) indices.push_back(i);
    try {
      const TrainingModel::Evaluated result = model_->evaluate(rows.get_batch(indices), cancel_check());
      sums.add(result.loss.item_double(), end - first, result.output, result.label, result.metrics);
    } catch (const Error& error) {
      throw Error(error.code(),
                  concat("evaluation after step ", step_, ", rows ", first, " to ", end - 1, ": ", error.what()));
    }
  }
  model_->module().set_training(true);
  return sums.means();
}

void Trainer::record_best(const std::map<std::string, double>& metrics) {
  const auto found = metrics.find(spec_.publish.metric);
  ++stale_evaluations_;
  if (found == metrics.end() || std::isnan(found->second)) return;
  const double value = found->second;
  if (best_step_ == 0 || (is_more_better(spec_.publish.metric) ? value > best_metric_ : value < best_metric_))
    stale_evaluations_ = 0;
  const auto measured_loss = metrics.find("loss");
  const std::optional<double> loss =
      measured_loss == metrics.end() ? std::nullopt : std::optional(measured_loss->second);
  // Of equal metrics, the lower loss wins, and then the later step.
  const bool wins_tie = !loss || !best_loss_ || *loss <= *best_loss_;
  const bool is_better = best_step_ == 0 || (value == best_metric_                  ? wins_tie
                                             : is_more_better(spec_.publish.metric) ? value > best_metric_
                                                                                    : value < best_metric_);
  if (!is_better) return;
  if (spec_.publish.when == "best" && is_first()) {
    model_->module().set_training(false);
    model_->module().save(best_file(step_).string());
    model_->module().set_training(true);
  }
  best_step_ = step_;
  best_metric_ = value;
  best_loss_ = loss;
  job_.update([&](JobStatus& status) {
    status.progress.best_metric = value;
    status.progress.best_step = step_;
    status.progress.best_metrics = metrics;
  });
}

fs::path Trainer::best_file(int64_t step) const { return options_.folder / concat("best-", step, ".pt"); }

bool Trainer::checkpoint_time_is_over() const {
  const int64_t since_ns = Clock::system().now_ns() - checkpoint_ns_, every = spec_.checkpoints.every_seconds;
  return every > 0 && since_ns >= every * 1'000'000'000;
}

void Trainer::checkpoint_if_due() {
  const int64_t every = spec_.checkpoints.every_steps;
  const bool by_time = ranks_ ? checkpoint_is_agreed_ : checkpoint_time_is_over();
  if ((every > 0 && step_ % every == 0) || by_time) try_checkpoint();
}

// A full disk may have space later, so the job continues and reports the failure.
void Trainer::try_checkpoint() {
  try {
    checkpoint();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kResourceExhausted && error.code() != ErrorCode::kUnavailable) throw;
    log(LogLevel::kWarning, "checkpoint failed", {{"job", job_.id()}, {"step", step_}, {"reason", error.what()}});
    job_.update([&](JobStatus& status) {
      status.message = concat("no checkpoint could be written at step ", step_, ": ", error.what());
    });
  }
}

// Gathers state that each rank keeps for itself on rank 0. All ranks are at the same step.
void Trainer::gather() {
  if (!zero_ && spec_.distribution.compression != "powersgd") return;
  // A failed checkpoint is repeated. Only rank 0 knows that, so its value decides on all ranks.
  if (ranks_->shared(checkpoint_step_ != step_ ? "missing" : "").empty()) return;
  if (zero_) optimizer_state_ = zero_->gather_state();
  compression_state_ = ranks_->gather_compression();
}

// Rank 0 writes the state of all ranks.
void Trainer::checkpoint() {
  if (ranks_) gather();
  if (!is_first()) return;
  checkpoint_ns_ = Clock::system().now_ns();
  if (checkpoint_step_ == step_) return;
  check_parameters("and is not saved");
  meter_->flush();
  TrainerCurve curve{job_.status().progress, job_.points_after(0)};
  curve.progress.checkpoint_step = step_;
  Checkpoints::Files files;
  files.save_model = [this](const std::string& path) { model_->module().save(path); };
  files.state = state();
  optimizer_state_ = compression_state_ = {};
  files.curve = to_text(curve);
  checkpoints_.write(step_, files);
  checkpoint_step_ = step_;
  remove_old_best();
  job_.update([this](JobStatus& status) {
    status.progress.checkpoint_step = step_;
    if (status.message.starts_with("no checkpoint")) status.message.clear();
  });
  if (options_.saved_status) options_.saved_status();
}

// Removes "best" files that no checkpoint refers to anymore, except the newest ones.
void Trainer::remove_old_best() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(options_.folder)) {
    if (entry.path().filename().string().starts_with("best-")) files.push_back(entry.path());
  }
  if (files.size() <= static_cast<size_t>(spec_.checkpoints.keep) + 1) return;
  std::ranges::sort(files, {}, [](const fs::path& file) { return fs::last_write_time(file); });
  std::error_code ignored;
  for (size_t i = 0; i + static_cast<size_t>(spec_.checkpoints.keep) + 1 < files.size(); ++i) {
    if (files[i] != best_file(best_step_)) fs::remove(files[i], ignored);
  }
}

void Trainer::write_result(const std::string& path) {
  const WeightAverage::Scope averaged(average_.get());
  fs::path saved = best_file(best_step_);
  if (spec_.publish.when != "best") {
    model_->module().set_training(false);
    if (!path.ends_with(".py")) return model_->module().save(path);
    // After a checkpoint the module is an archive, not source code.
    saved = options_.folder / "result.pt";
    model_->module().save(saved.string());
  }
  copy_as_base(options_.base_archive, saved.string(), path);
}

}  // namespace tensord::server
