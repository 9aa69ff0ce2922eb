#include "core/files/idx.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/base/error.h"
#include "core/tensor/mapped_file.h"

namespace tensord::files {
namespace {

constexpr std::string_view kGzip = "\x1f\x8b";
constexpr size_t kMaxUnpacked = size_t{4} << 30;

DType idx_dtype(unsigned char type, const std::string& path) {
  switch (type) {
    case 0x08: return DType::kUInt8;
    case 0x09: return DType::kInt8;
    case 0x0b: return DType::kInt16;
    case 0x0c: return DType::kInt32;
    case 0x0d: return DType::kFloat32;
    case 0x0e: return DType::kFloat64;
    default: fail(ErrorCode::kDataLoss, path, ": is not an idx file: type ", static_cast<int>(type), " is not known");
  }
}

Tensor parse_idx(std::string_view bytes, const std::string& path) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (bytes.size() < 4 || byte(0) != 0 || byte(1) != 0) fail(ErrorCode::kDataLoss, path, ": is not an idx file");
  const DType dtype = idx_dtype(byte(2), path);
  const size_t rank = byte(3), begin = 4 + 4 * rank;
  if (rank > kMaxDims || bytes.size() < begin)
    fail(ErrorCode::kDataLoss, path, ": is not an idx file, or is truncated");
  Dims sizes;
  for (size_t d = 0; d < rank; ++d) {
    uint32_t size = 0;
    for (size_t i = 0; i < 4; ++i) size = size << 8 | byte(4 + 4 * d + i);
    sizes.push_back(size);
  }
  const size_t available = bytes.size() - begin, item = size_of(dtype);
  // Each size is below 2^32, so checking the product step by step against the file's size cannot overflow.
  size_t numel = 1;
  bool fits = true;
  for (const int64_t size : sizes) {
    fits = fits && (size == 0 || numel <= available / static_cast<size_t>(size));
    if (fits) numel *= static_cast<size_t>(size);
  }
  if (!fits || numel * item != available)
    fail(ErrorCode::kDataLoss, path, ": has ", available, " bytes of data for ", sizes, " of ", name_of(dtype));
  const Tensor out = Tensor::empty(sizes, dtype);
  auto* to = static_cast<char*>(out.raw_data());
  for (size_t i = 0; i < available; i += item) {
    for (size_t b = 0; b < item; ++b) to[i + b] = bytes[begin + i + item - 1 - b];
  }
  return out;
}

}  // namespace

std::string gunzip(std::string_view packed, size_t max_bytes, const std::string& source) {
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK)
    fail(ErrorCode::kResourceExhausted, source, ": no memory to unpack");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);
  std::string out;
  const auto chunk = std::make_unique<char[]>(1 << 18);
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      const size_t part = std::min<size_t>(packed.size(), 1 << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
      stream.avail_in = static_cast<uInt>(part);
      packed.remove_prefix(part);
    }
    stream.next_out = reinterpret_cast<Bytef*>(chunk.get());
    stream.avail_out = 1 << 18;
    status = inflate(&stream, Z_NO_FLUSH);
    const size_t made = (1 << 18) - stream.avail_out;
    if (status != Z_OK && status != Z_STREAM_END)
      fail(ErrorCode::kDataLoss, source, ": damaged gzip file: ", stream.msg ? stream.msg : "it is truncated");
    if (made > max_bytes - out.size())
      fail(ErrorCode::kResourceExhausted, source, ": unpacks to more than ", max_bytes, " bytes");
    out.append(chunk.get(), made);
  }
  if (stream.avail_in > 0 || !packed.empty()) fail(ErrorCode::kDataLoss, source, ": bytes are left behind a gzip file");
  return out;
}

Tensor read_idx(const std::string& path) {
  const auto file = MappedFile::open(path);
  const std::string_view bytes(file->data(), file->size());
  if (bytes.starts_with(kGzip)) return parse_idx(gunzip(bytes, kMaxUnpacked, path), path);
  return parse_idx(bytes, path);
}

}  // namespace tensord::files
