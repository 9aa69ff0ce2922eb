#pragma once

#include "core/base/work_thread.h"
#include "protos/training.grpc.pb.h"
#include "server/transport/grpc/call.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

namespace training_rpc = training::v1;

// Every call arrives as bytes, as those of InferenceService.
using TrainingRpcs = training_rpc::TrainingService::WithRawMethod_ListHosts<
    training_rpc::TrainingService::WithRawMethod_StreamData<training_rpc::TrainingService::WithRawMethod_CreateJob<
        training_rpc::TrainingService::WithRawMethod_GetJob<training_rpc::TrainingService::WithRawMethod_ListJobs<
            training_rpc::TrainingService::WithRawMethod_WatchJob<training_rpc::TrainingService::WithRawMethod_PauseJob<
                training_rpc::TrainingService::WithRawMethod_ResumeJob<
                    training_rpc::TrainingService::WithRawMethod_CancelJob<
                        training_rpc::TrainingService::WithRawMethod_DeleteJob<
                            training_rpc::TrainingService::WithRawMethod_UploadModel<
                                training_rpc::TrainingService::WithRawMethod_Rollback<
                                    training_rpc::TrainingService::Service>>>>>>>>>>>>;

// What the calls about training share. `thread` does what takes long.
struct TrainingCalls {
  ServerState& state;
  TrainingRpcs& rpcs;
  OpenStreams& streams;
  WorkThread& thread;

  // Throws Error{kUnimplemented} when the daemon runs without training.
  TrainingService& service() const;
};

// Answers the calls about training on this queue from now on.
void wait_training_calls(TrainingCalls& calls, CallQueue queue);
// The streams among them.
void wait_training_streams(TrainingCalls& calls, CallQueue queue);

}  // namespace tensord::server
