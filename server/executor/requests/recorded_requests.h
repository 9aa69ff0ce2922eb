#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/executor/model/model.h"

namespace tensord::server {

// Files of recorded requests, which `--capture-dir` writes and warm-up and training read. A file is the eight bytes
// "TNSDREQ1" and then records:
//   uint32 length of the head, uint64 length of the data (both little-endian), the head, the data
// The head is JSON: {"model", "version", "id", "time_unix_us", "inputs": [{"name", "datatype", "shape", "bytes"}],
// "outputs": [the same]}. The data is that of the inputs, then that of the outputs, one after the other, row-major and
// little-endian as in raw_input_contents; an element of BYTES is a uint32 length and its bytes.

struct RecordedRequest {
  std::string model, version, id;
  int64_t time_unix_us = 0;  // when it arrived
  std::vector<InferTensor> inputs;
  std::vector<InferTensor> outputs;  // empty: not recorded
};

// Makes the bytes of one record. Copies the tensors' data when they are added.
class RecordWriter {
 public:
  RecordWriter(const std::string& model, const std::string& version, const std::string& id, int64_t time_unix_us);
  // Inputs first, then outputs.
  // `wire_datatype`: the type that the client sent, which is the tensor's or (unsigned_widening.h) a narrower one.
  void add_input(const InferTensor& tensor, DataType wire_datatype) { add(tensor, wire_datatype, inputs_); }
  void add_input(const InferTensor& tensor) { add_input(tensor, tensor.datatype); }
  void add_output(const InferTensor& tensor) { add(tensor, tensor.datatype, outputs_); }
  size_t data_bytes() const { return data_.size(); }
  // The record; it cannot be added to afterwards.
  std::string finish();

 private:
  void add(const InferTensor& tensor, DataType wire_datatype, std::string& list);

  std::string head_;              // as far as the lists
  std::string inputs_, outputs_;  // JSON, separated by commas
  std::string data_;
};

// What a file of recorded requests begins with.
std::string recorded_requests_magic();

struct RecordLimits {
  size_t requests = 100'000;
  uint64_t bytes = uint64_t{1} << 32;
};
// Reads such a file, which may be hostile; a record that was cut off at the end is left out. Memory is charged to the
// calling thread's owner. Throws Error that starts with the path: kNotFound, kDataLoss (malformed),
// kResourceExhausted (more than the limits).
std::vector<RecordedRequest> read_recorded_requests(const std::string& path, const RecordLimits& limits = {});

}  // namespace tensord::server
