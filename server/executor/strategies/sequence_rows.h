#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "server/executor/model/model.h"

namespace tensord::server {

// Rows of a batch: tensors of shape [1, ...]. A batch of them has shape [rows, ...].

// Puts rows of equal shapes and datatypes together; a null row becomes zeros, or empty strings. Rows that lie one
// behind the other in one storage are a batch already and not copied; nor is a single row. Adds to *copied_bytes what
// was copied. REQUIRES: at least one row is not null.
InferTensor stack_rows(std::span<const InferTensor* const> rows, uint64_t* copied_bytes);
Tensor stack_rows(std::span<const Tensor* const> rows, uint64_t* copied_bytes);

// As stack_rows of rows that differ in the size of dimension `dim`: each is filled up with zeros at its front to the
// largest. `dim` counts the batch dimension.
Tensor stack_right_aligned(std::span<const Tensor* const> rows, int64_t dim, uint64_t* copied_bytes);

// Row `row` of a batch of `rows`, as a view. Throws Error{kFailedPrecondition} when the first dimension is not `rows`.
InferTensor row_of(const InferTensor& batch, size_t row, size_t rows);
Tensor row_of(const Tensor& batch, size_t row);

// The last `size` elements of dimension `dim`, as a view; `tensor` itself when it has no more.
Tensor last_of(const Tensor& tensor, int64_t dim, int64_t size);

// An input that the server makes.
InferTensor make_input(const std::string& name, Tensor tensor);
// A state that SequenceModel::take_states gave, or a batch of such: the sequence's own, for the model to write to.
InferTensor make_state(const std::string& name, Tensor tensor);

// Names datatype and shape: what has to be equal for rows to share a batch.
void append_shape_key(const InferTensor& tensor, std::string& key);

}  // namespace tensord::server
