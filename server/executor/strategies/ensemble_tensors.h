#pragma once

#include "server/executor/model/model.h"
#include "server/executor/strategies/ensemble_plan.h"

namespace tensord::server {

// Adds or removes a batch dimension of 1 if the receiver's shape needs it. A tensor that fits neither way is unchanged;
// the receiver rejects it.
void fit_batch(InferTensor& tensor, const EnsemblePlan::BatchFit& fit);

// The datatype of an ensemble's tensor in a request to a step: the declared one, if the tensor's own type represents
// it.
DataType wire_type(const InferTensor& tensor, const std::optional<DataType>& declared);

}  // namespace tensord::server
