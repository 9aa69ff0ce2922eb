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
  int64_t time_unix_us = 0;  // time of arrival
  std::vector<InferTensor> inputs;
  std::vector<InferTensor> outputs;  // empty: not recorded
};

// Serializes one record. add_input and add_output copy the tensor's data.
class RecordWriter {
 public:
  RecordWriter(const std::string& model, const std::string& version, const std::string& id, int64_t time_unix_us);
  // Add all inputs first, then all outputs. `wire_datatype` is the type that the client sent: the tensor's own or a
  // narrower unsigned one (unsigned_widening.h).
  void add_input(const InferTensor& tensor, DataType wire_datatype) { add(tensor, wire_datatype, inputs_); }
  void add_input(const InferTensor& tensor) { add_input(tensor, tensor.datatype); }
  void add_output(const InferTensor& tensor) { add(tensor, tensor.datatype, outputs_); }
  size_t data_bytes() const { return data_.size(); }
  // The record. Nothing can be added afterwards.
  std::string finish();

 private:
  void add(const InferTensor& tensor, DataType wire_datatype, std::string& list);

  std::string head_;              // up to the lists of tensors
  std::string inputs_, outputs_;  // JSON, separated by commas
  std::string data_;
};

// The magic bytes of a file of recorded requests.
std::string recorded_requests_magic();

struct RecordLimits {
  size_t requests = 100'000;
  uint64_t bytes = uint64_t{1} << 32;
};
// Reads a file of recorded requests, which may be hostile. A truncated last record is ignored. Memory is charged to the
// calling thread's owner. Throws Error that starts with the path: kNotFound, kDataLoss (malformed), kResourceExhausted
// (above the limits).
std::vector<RecordedRequest> read_recorded_requests(const std::string& path, const RecordLimits& limits = {});

}  // namespace tensord::server
