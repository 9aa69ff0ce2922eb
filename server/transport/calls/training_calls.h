#pragma once

#include <string>

#include "core/base/work_thread.h"
#include "protos/training.grpc.pb.h"
#include "server/transport/grpc/call.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

namespace training_rpc = training::v1;

// Every call arrives as bytes, like those of InferenceService.
using TrainingRpcs = training_rpc::TrainingService::WithRawMethod_UploadData<
    training_rpc::TrainingService::WithRawMethod_DownloadModel<training_rpc::TrainingService::WithRawMethod_ListHosts<
        training_rpc::TrainingService::WithRawMethod_StreamData<training_rpc::TrainingService::WithRawMethod_CreateJob<
            training_rpc::TrainingService::WithRawMethod_GetJob<training_rpc::TrainingService::WithRawMethod_ListJobs<
                training_rpc::TrainingService::WithRawMethod_WatchJob<
                    training_rpc::TrainingService::WithRawMethod_PauseJob<
                        training_rpc::TrainingService::WithRawMethod_ResumeJob<
                            training_rpc::TrainingService::WithRawMethod_CancelJob<
                                training_rpc::TrainingService::WithRawMethod_DeleteJob<
                                    training_rpc::TrainingService::WithRawMethod_UploadModel<
                                        training_rpc::TrainingService::WithRawMethod_Rollback<
                                            training_rpc::TrainingService::WithRawMethod_FinishJob<
                                                training_rpc::TrainingService::Service>>>>>>>>>>>>>>>;

// State shared by the training calls. Slow calls run on `thread`.
struct TrainingCalls {
  ServerState& state;
  TrainingRpcs& rpcs;
  OpenStreams& streams;
  WorkThread& thread;

  // Throws Error{kUnimplemented} if training is disabled.
  TrainingService& service() const;
};

// To whom a client's uploads belong: to its token, of which this is a digest. Empty without tokens.
std::string owner_of_uploads(const AccessPolicy& access, const grpc::ServerContextBase& context);

// Answers the unary training calls on this queue.
void wait_training_calls(TrainingCalls& calls, CallQueue queue);
// Answers the streaming ones.
void wait_training_streams(TrainingCalls& calls, CallQueue queue);
// Those that carry files: data that comes, models that go.
void wait_training_files(TrainingCalls& calls, CallQueue queue);

}  // namespace tensord::server
