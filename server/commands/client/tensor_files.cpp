#include "server/commands/client/tensor_files.h"

#include <tensord/client/error.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/files/npy.h"
#include "core/jit/archive/zip_writer.h"
#include "server/commands/client/connection.h"

namespace tensord::server {
namespace {

using client::DataType;
using client::Tensor;

constexpr uint64_t kMaxTensorFileBytes = uint64_t{1} << 31;
constexpr uint64_t kMaxTexts = uint64_t{1} << 24;
constexpr size_t kHeaderAlignment = 64;

struct Descr {
  char kind = 0;       // f, i, u, b, S or U
  size_t element = 0;  // bytes per element
};

Descr parse_descr(const std::string& source, const std::string& descr) {
  Descr out;
  const bool has_kind = descr.size() >= 3 && (descr[0] == '<' || descr[0] == '|') &&
                        std::string_view("fiubSU").find(descr[1]) != std::string_view::npos;
  const char* end = descr.data() + descr.size();
  size_t number = 0;
  if (has_kind) {
    const auto [at, error] = std::from_chars(descr.data() + 2, end, number);
    if (error == std::errc() && at == end && number > 0 && number < (1 << 28)) {
      out = {descr[1], descr[1] == 'U' ? number * 4 : number};
    }
  }
  if (out.kind == 0) {
    fail(ErrorCode::kUnimplemented, source, ": arrays of dtype '", descr.substr(0, 32),
         "' are not read; booleans, numbers (little-endian) and texts are");
  }
  return out;
}

DataType number_type(const std::string& source, const Descr& descr) {
  for (const auto& [kind, type] : {std::pair{'b', DataType::kBool},
                                   {'u', DataType::kUint8},
                                   {'u', DataType::kUint16},
                                   {'u', DataType::kUint32},
                                   {'u', DataType::kUint64},
                                   {'i', DataType::kInt8},
                                   {'i', DataType::kInt16},
                                   {'i', DataType::kInt32},
                                   {'i', DataType::kInt64},
                                   {'f', DataType::kFp16},
                                   {'f', DataType::kFp32},
                                   {'f', DataType::kFp64}}) {
    if (kind == descr.kind && client::element_size(type) == descr.element) return type;
  }
  fail(ErrorCode::kUnimplemented, source, ": arrays of dtype '", descr.kind, descr.element, "' are not read");
}

// Reorders Fortran-order data to C order.
std::string in_row_major(std::string_view data, const std::vector<int64_t>& shape, size_t item) {
  std::string out(data.size(), '\0');
  std::vector<size_t> strides(shape.size()), index(shape.size(), 0);
  size_t step = item;
  for (size_t d = 0; d < shape.size(); ++d) {
    strides[d] = step;
    step *= static_cast<size_t>(shape[d]);
  }
  size_t from = 0;
  for (size_t to = 0; to < out.size(); to += item) {
    std::memcpy(out.data() + to, data.data() + from, item);
    for (size_t d = shape.size(); d-- > 0;) {
      from += strides[d];
      if (++index[d] < static_cast<size_t>(shape[d])) break;
      from -= strides[d] * index[d];
      index[d] = 0;
    }
  }
  return out;
}

// Decodes an element of dtype S or U, which is padded with zeros.
std::string text_of_element(std::string_view element, char kind) {
  std::string out;
  if (kind == 'S') {
    out = element;
    out.erase(out.find_last_not_of('\0') + 1);
    return out;
  }
  size_t size = 0;
  for (size_t at = 0; at < element.size(); at += 4) {
    uint32_t code = 0;
    std::memcpy(&code, element.data() + at, 4);
    append_utf8(out, code);
    if (code != 0) size = out.size();
  }
  out.resize(size);
  return out;
}

Tensor tensor_of_npy(const std::string& source, std::string_view bytes) {
  const files::NpyHeader header = files::read_npy_header(source, bytes);
  const Descr descr = parse_descr(source, header.descr);
  const std::vector<int64_t> shape(header.shape.begin(), header.shape.end());
  std::string_view data = bytes.substr(header.data_begin);
  const auto count = static_cast<size_t>(checked_numel(header.shape));
  if (count > data.size() / descr.element || count * descr.element != data.size()) {
    fail(ErrorCode::kDataLoss, source, ": has ", data.size(), " bytes of data for ", count, " elements of ",
         descr.element);
  }
  std::string turned;
  if (header.is_fortran && shape.size() > 1) data = turned = in_row_major(data, shape, descr.element);
  if (descr.kind == 'S' || descr.kind == 'U') {
    if (count > kMaxTexts) fail(ErrorCode::kResourceExhausted, source, ": has more than ", kMaxTexts, " texts");
    std::vector<std::string> texts;
    for (size_t at = 0; at < data.size(); at += descr.element) {
      texts.push_back(text_of_element(data.substr(at, descr.element), descr.kind));
    }
    return Tensor::strings(texts, shape);
  }
  const DataType type = number_type(source, descr);
  if (type == DataType::kBool) {
    // NumPy stores a bool in a byte; normalize values other than 0 and 1.
    turned.assign(data);
    std::transform(turned.begin(), turned.end(), turned.begin(), [](char c) { return c != 0 ? 1 : 0; });
    data = turned;
  }
  return Tensor::copy_bytes(type, shape, std::as_bytes(std::span(data)));
}

// Serializes a tensor as a .npy file.
std::string npy_of_tensor(const Tensor& tensor) {
  std::string descr, data;
  if (tensor.type() == DataType::kBytes) {
    const std::vector<std::string> texts = tensor.strings();
    size_t width = 1;
    for (const std::string& text : texts) width = std::max(width, text.size());
    if (width * texts.size() > kMaxTensorFileBytes) {
      fail(ErrorCode::kResourceExhausted, "texts of up to ", width, " bytes, ", texts.size(),
           " of them, make too large an array");
    }
    for (const std::string& text : texts) data += text + std::string(width - text.size(), '\0');
    descr = concat("|S", width);
  } else if (tensor.type() == DataType::kBf16) {
    for (const client::BFloat16 value : tensor.values<client::BFloat16>()) {
      const auto wide = static_cast<float>(value);
      data.append(reinterpret_cast<const char*>(&wide), sizeof(wide));
    }
    descr = "<f4";
  } else {
    const size_t element = client::element_size(tensor.type());
    const std::string_view name = client::to_string(tensor.type());
    const char kind = name == "BOOL" ? 'b' : name.starts_with("FP") ? 'f' : name.starts_with("UINT") ? 'u' : 'i';
    descr = concat(element == 1 ? '|' : '<', kind, element);
    data.assign(reinterpret_cast<const char*>(tensor.bytes().data()), tensor.size_bytes());
  }
  std::string shape;
  for (const int64_t size : tensor.shape()) shape += concat(size, ",");
  std::string header = concat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", shape, "), }");
  constexpr size_t kBefore = 10, kNewline = 1;
  header.append(kHeaderAlignment - (kBefore + header.size() + kNewline) % kHeaderAlignment, ' ');
  header += '\n';
  check(header.size() <= 0xffff, "an array of ", tensor.shape().size(), " dimensions");
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size() & 0xff) +
         static_cast<char>(header.size() >> 8) + header + data;
}

}  // namespace

Tensor read_npy(const std::string& path) { return tensor_of_npy(path, read_file(path, kMaxTensorFileBytes)); }

NamedTensors read_npz_tensors(const std::string& path) {
  NamedTensors out;
  const auto add = [&](const std::string& name, const std::string& source, const Storage& bytes) {
    out.emplace_back(name, tensor_of_npy(source, {static_cast<const char*>(bytes->data()), bytes->size_bytes()}));
  };
  files::read_npz_entries(path, kMaxTensorFileBytes, add);
  return out;
}

void write_npy(const std::string& path, const Tensor& tensor) {
  AtomicFile file(path);
  file.write(npy_of_tensor(tensor));
  file.commit();
}

void write_npz(const std::string& path, const NamedTensors& tensors) {
  jit::ZipWriter zip(path);
  for (const auto& [name, tensor] : tensors) zip.add(name + ".npy", npy_of_tensor(tensor));
  zip.finish();
}

}  // namespace tensord::server
