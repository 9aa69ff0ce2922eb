#include "core/jit/archive/zip_writer.h"

#include <minizip/zip.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <utility>

#include "core/base/atomic_file.h"
#include "core/tensor/allocator.h"

namespace tensord::jit {
namespace {

constexpr size_t kLocalHeader = 30;
constexpr size_t kZip64Extra = 20;
constexpr size_t kExtraHeader = 4;
constexpr size_t kMaxPiece = size_t{1} << 30;  // minizip uses unsigned for sizes

// Lets minizip write to a stdio file.
voidpf file_open(voidpf opaque, const void*, int) { return opaque; }
uLong file_read(voidpf, voidpf stream, void* out, uLong count) {
  return std::fread(out, 1, count, static_cast<std::FILE*>(stream));
}
uLong file_write(voidpf, voidpf stream, const void* data, uLong count) {
  return std::fwrite(data, 1, count, static_cast<std::FILE*>(stream));
}
ZPOS64_T file_tell(voidpf, voidpf stream) { return static_cast<ZPOS64_T>(ftello(static_cast<std::FILE*>(stream))); }
long file_seek(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
  const int whence = origin == ZLIB_FILEFUNC_SEEK_CUR   ? SEEK_CUR
                     : origin == ZLIB_FILEFUNC_SEEK_END ? SEEK_END
                                                        : SEEK_SET;
  return fseeko(static_cast<std::FILE*>(stream), static_cast<off_t>(offset), whence);
}
int file_close(voidpf, voidpf) { return 0; }
int file_error(voidpf, voidpf stream) { return std::ferror(static_cast<std::FILE*>(stream)); }

}  // namespace

struct ZipWriter::State {
  explicit State(const std::string& path) : file(path) {}
  AtomicFile file;
  zipFile zip = nullptr;
};

ZipWriter::ZipWriter(const std::string& path) : state_(std::make_unique<State>(path)) {
  zlib_filefunc64_def functions{file_open, file_read,  file_write, file_tell,
                                file_seek, file_close, file_error, state_->file.stream()};
  state_->zip = zipOpen2_64(path.c_str(), APPEND_STATUS_CREATE, nullptr, &functions);
  if (!state_->zip) state_->file.fail_write();
}

ZipWriter::~ZipWriter() {
  if (state_->zip) zipClose(state_->zip, nullptr);
}

void ZipWriter::add(const std::string& name, std::string_view bytes) {
  const bool is_zip64 = bytes.size() >= std::numeric_limits<uint32_t>::max();
  const auto begin =
      static_cast<size_t>(ftello(state_->file.stream())) + kLocalHeader + name.size() + (is_zip64 ? kZip64Extra : 0);
  // Pads with an extra field as PyTorch's writer does: the id "FB", its length, then 'Z' up to the payload.
  size_t padding = (kAlignment - begin % kAlignment) % kAlignment;
  if (padding > 0 && padding < kExtraHeader) padding += kAlignment;
  std::string extra(padding, 'Z');
  if (padding > 0) {
    const size_t length = padding - kExtraHeader;
    extra[0] = 'F';
    extra[1] = 'B';
    extra[2] = static_cast<char>(length & 0xff);
    extra[3] = static_cast<char>(length >> 8);
  }
  const zip_fileinfo info{};
  bool is_good = zipOpenNewFileInZip64(state_->zip, name.c_str(), &info, extra.data(), static_cast<uInt>(extra.size()),
                                       nullptr, 0, nullptr, 0, 0, is_zip64) == ZIP_OK;
  for (size_t done = 0; is_good && done < bytes.size();) {
    const size_t piece = std::min(bytes.size() - done, kMaxPiece);
    is_good = zipWriteInFileInZip(state_->zip, bytes.data() + done, static_cast<unsigned>(piece)) == ZIP_OK;
    done += piece;
  }
  is_good = is_good && zipCloseFileInZip(state_->zip) == ZIP_OK;
  if (!is_good) state_->file.fail_write();
}

void ZipWriter::finish() {
  if (zipClose(std::exchange(state_->zip, nullptr), nullptr) != ZIP_OK) state_->file.fail_write();
  state_->file.commit();
}

}  // namespace tensord::jit
