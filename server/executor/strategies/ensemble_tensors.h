#pragma once

#include "server/executor/model/model.h"
#include "server/executor/strategies/ensemble_plan.h"

namespace tensord::server {

// Adds or takes away a batch of 1 where the taker's shape asks for it. What does not fit even so stays as it is: the
// taker refuses it.
void fit_batch(InferTensor& tensor, const EnsemblePlan::BatchFit& fit);

// The type that a tensor of an ensemble has in a request to a step: as declared, where the tensor has the type that
// stands for it.
DataType wire_type(const InferTensor& tensor, const std::optional<DataType>& declared);

}  // namespace tensord::server
