// Jobs as messages and back: every field of a point, options in any place, invalid states.
#include "server/transport/calls/training_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "server/training/jobs/job_json.h"
#include "tests/server/error_of.h"

namespace tensord::server::training_messages_test {
namespace {

using ::testing::HasSubstr;

training::v1::JobSpec spec() {
  training::v1::JobSpec out;
  out.mutable_model()->set_name("m");
  out.mutable_data()->set_file("d.npz");
  out.mutable_loss()->set_builtin("mse");
  out.mutable_loss()->set_label("y");
  out.set_epochs(1);
  out.mutable_optimizer()->set_name("adam");
  return out;
}

void set_option(google::protobuf::Struct& options, const std::string& name, double value) {
  (*options.mutable_fields())[name].set_number_value(value);
}

std::string refusal(const training::v1::JobSpec& message) {
  const Error error = error_of([&] { to_job_spec(message); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  return error.what();
}

TEST(TrainingMessages, OptionsStandInEitherPlace) {
  training::v1::JobSpec field = spec(), map = spec();
  field.mutable_optimizer()->set_lr(0.5);
  set_option(*map.mutable_optimizer()->mutable_options(), "lr", 0.5);
  EXPECT_EQ(to_json(to_job_spec(field)), to_json(to_job_spec(map)));
  EXPECT_NE(to_json(to_job_spec(field)), to_json(to_job_spec(spec())));
  set_option(*field.mutable_optimizer()->mutable_options(), "lr", 0.5);
  EXPECT_EQ(refusal(field), "optimizer.options: lr appears twice");
  for (const char* name : {"pattern", "freeze"}) {
    training::v1::JobSpec wrong = spec();
    set_option(*wrong.mutable_optimizer()->mutable_options(), name, 1);
    EXPECT_EQ(refusal(wrong), std::string("optimizer.options: '") + name + "' is not an option");
  }
  training::v1::JobSpec unnamed = spec();
  unnamed.mutable_optimizer()->clear_name();
  set_option(*unnamed.mutable_optimizer()->mutable_options(), "name", 1);
  EXPECT_EQ(refusal(unnamed), "optimizer.options: 'name' is not an option");
  training::v1::JobSpec groups = spec();
  set_option(*groups.mutable_optimizer()->mutable_options(), "groups", 1);
  EXPECT_EQ(refusal(groups), "optimizer.options: 'groups' is not an option");
}

TEST(TrainingMessages, OptionsOfGroups) {
  training::v1::JobSpec message = spec();
  auto& first = *message.mutable_optimizer()->add_groups();
  first.set_pattern("a.*");
  auto& second = *message.mutable_optimizer()->add_groups();
  second.set_pattern("b.*");
  set_option(*second.mutable_options(), "lr", 0.25);
  EXPECT_THAT(to_json(to_job_spec(message)).dump(), HasSubstr("0.25"));
  training::v1::JobSpec back;
  to_message(to_job_spec(message), back);
  EXPECT_EQ(to_json(to_job_spec(back)), to_json(to_job_spec(message)));
  second.set_lr(0.5);
  EXPECT_EQ(refusal(message), "optimizer.groups.options: lr appears twice");
  second.clear_lr();
  set_option(*second.mutable_options(), "freeze", 1);
  EXPECT_EQ(refusal(message), "optimizer.groups.options: 'freeze' is not an option");
}

// Options without a field of their own are returned in the map, others are not.
TEST(TrainingMessages, OptionsWithoutAField) {
  training::v1::JobSpec message = spec();
  message.mutable_optimizer()->set_name("adagrad");
  message.mutable_optimizer()->set_lr(0.5);
  set_option(*message.mutable_optimizer()->mutable_options(), "initial_accumulator_value", 0.25);
  training::v1::JobSpec back;
  to_message(to_job_spec(message), back);
  EXPECT_EQ(back.optimizer().options().fields().at("initial_accumulator_value").number_value(), 0.25);
  EXPECT_FALSE(back.optimizer().options().fields().contains("lr"));
  EXPECT_EQ(back.optimizer().lr(), 0.5);
}

TEST(TrainingMessages, States) {
  for (const JobState state : {JobState::kQueued, JobState::kRunning, JobState::kPaused, JobState::kCompleted,
                               JobState::kFailed, JobState::kCancelled}) {
    JobStatus status;
    status.id = "id";
    status.state = state;
    status.spec = to_job_spec(spec());
    training::v1::Job message;
    to_message(status, message);
    EXPECT_EQ(to_job_status(message).state, state);
    EXPECT_EQ(to_job_state(message.state()), state);
  }
  EXPECT_EQ(std::string(error_of([] { to_job_state(static_cast<training::v1::JobState>(77)); }).what()),
            "states: 77 is not a job's state");
  training::v1::Job unknown;
  unknown.set_id("id");
  unknown.set_state(static_cast<training::v1::JobState>(77));
  EXPECT_EQ(std::string(error_of([&] { to_job_status(unknown); }).what()), "state: 77 is not a job's state");
  unknown.set_state(training::v1::JOB_STATE_UNSPECIFIED);
  EXPECT_EQ(std::string(error_of([&] { to_job_status(unknown); }).what()), "state: 'UNSPECIFIED' is not a job's state");
}

TEST(TrainingMessages, EveryFieldOfAPoint) {
  const CurvePoint point{.step = 1,
                         .epoch = 2,
                         .loss = 3,
                         .learning_rate = 4,
                         .gradient_norm = 5,
                         .samples_per_second = 6,
                         .metrics = {{"a", 7}, {"b", 8}}};
  training::v1::Point message;
  to_message(point, message);
  const CurvePoint back = to_curve_point(message);
  EXPECT_EQ(to_json(back), to_json(point));
  EXPECT_EQ(back.metrics, point.metrics);
}

}  // namespace
}  // namespace tensord::server::training_messages_test
