#include "server/fetch/download.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>

#include "core/base/atomic_file.h"
#include "core/base/file_descriptor.h"
#include "core/base/read_whole_file.h"
#include "server/fetch/checksum.h"
#include "server/fetch/exchange.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

// A file that grows, and the ETag of what it is a part of.
class Part {
 public:
  explicit Part(const std::string& path)
      : path_(path + ".part"),
        etag_path_(path + ".etag"),
        file_(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (file_.get() < 0) fail_file(path_, "written", errno);
    size_ = fs::file_size(path_);
    etag_ = read_whole_file(etag_path_).value_or("");
  }

  const std::string& path() const { return path_; }
  const std::string& etag() const { return etag_; }
  uint64_t size() const { return size_; }

  void restart(const std::string& etag) {
    if (ftruncate(file_.get(), 0) != 0) fail_file(path_, "written", errno);
    size_ = 0;
    etag_ = etag;
    AtomicFile out(etag_path_);
    out.write(etag);
    out.commit();
  }

  void append(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail_file(path_, "written", errno);
      size_ += static_cast<uint64_t>(count);
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }

  void flush() {
    if (fsync(file_.get()) != 0) fail_file(path_, "written", errno);
  }
  void remove() {
    std::error_code ignored;
    fs::remove(path_, ignored);
    fs::remove(etag_path_, ignored);
  }
  void rename_to(const std::string& path) {
    fs::rename(path_, path);
    std::error_code ignored;
    fs::remove(etag_path_, ignored);
  }

 private:
  const std::string path_, etag_path_;
  const FileDescriptor file_;
  std::string etag_;
  uint64_t size_ = 0;
};

// The first byte and the size of the whole file, of "bytes 100-199/200".
struct ContentRange {
  uint64_t first = 0, total = 0;
};
std::optional<ContentRange> parse_content_range(const std::string& text) {
  constexpr std::string_view kUnit = "bytes ";
  const size_t dash = text.find('-'), slash = text.find('/');
  if (!text.starts_with(kUnit) || dash == std::string::npos || slash == std::string::npos) return std::nullopt;
  ContentRange out;
  const auto read = [&](size_t from, size_t to, uint64_t& number) {
    const auto [end, error] = std::from_chars(text.data() + from, text.data() + to, number);
    return error == std::errc() && end == text.data() + to;
  };
  const bool is_good = read(kUnit.size(), dash, out.first) && read(slash + 1, text.size(), out.total);
  return is_good ? std::optional(out) : std::nullopt;
}

class Download {
 public:
  Download(const RemoteFile& file, const RemoteFiles& remote, const DownloadLimits& limits, Part& part)
      : file_(file), remote_(remote), limits_(limits), part_(part) {}

  // Whether all bytes are of this download, none of an earlier one.
  bool was_restarted() const { return was_restarted_; }

  void once() {
    if (file_.size && part_.size() > *file_.size) part_.restart("");
    if (file_.size && part_.size() == *file_.size && has_checksum()) return;  // the checksum decides
    const bool can_continue = part_.size() > 0 && (!part_.etag().empty() || has_checksum());
    HttpFields fields;
    if (can_continue) {
      fields.emplace_back("Range", concat("bytes=", part_.size(), "-"));
      if (!part_.etag().empty()) fields.emplace_back("If-Range", concat("\"", part_.etag(), "\""));
    }
    exchange(
        file_.url, remote_, fields, [this](const HttpReply& reply) { return begin(reply); },
        [this](std::string_view bytes) { return take(bytes); });
    if (total_ && part_.size() != *total_) {
      throw TransientHttpError(ErrorCode::kUnavailable, concat(file_.url.printable(), ": ended after ", part_.size(),
                                                               " of ", *total_, " bytes"));
    }
  }

 private:
  bool has_checksum() const { return !file_.sha256.empty() || !file_.git_sha1.empty(); }

  // Some servers send a range without looking at If-Range.
  bool continues(const HttpReply& reply, const std::optional<ContentRange>& range) const {
    const bool is_same = part_.size() == 0 || has_checksum() || reply.strong_etag() == part_.etag();
    return reply.status == 206 && range && range->first == part_.size() && is_same;
  }

  // Whether nothing of the file is left to ask for: the last call was interrupted behind its last byte.
  bool is_complete(const HttpReply& reply) const {
    const bool is_same = has_checksum() || (!part_.etag().empty() && reply.strong_etag() == part_.etag());
    return reply.status == 416 && part_.size() > 0 && is_same &&
           reply.field("Content-Range") == concat("bytes */", part_.size());
  }

  bool begin(const HttpReply& reply) {
    const std::optional<ContentRange> range = parse_content_range(reply.field("Content-Range"));
    const bool has_length = !reply.field("Content-Length").empty();
    if (has_length && !reply.content_length())
      fail(ErrorCode::kDataLoss, file_.url.printable(), ": its Content-Length is no number");
    if (is_complete(reply)) {
      total_ = part_.size();
      return false;
    }
    if (continues(reply, range)) {
      total_ = range->total;
    } else if (reply.status == 200) {
      part_.restart(reply.strong_etag());
      was_restarted_ = true;
      total_ = reply.content_length();
    } else {
      part_.restart("");
      throw TransientHttpError(ErrorCode::kUnavailable, concat(file_.url.printable(), ": status ", reply.status,
                                                               " with another part of the file than was asked for"));
    }
    if (total_) check_total(*total_);
    return true;
  }

  void check_total(uint64_t bytes) const {
    if (bytes > limits_.max_bytes) {
      fail(ErrorCode::kResourceExhausted, file_.url.printable(), ": is larger than the ", limits_.max_bytes,
           " bytes of --max-size that are left");
    }
    if (file_.size && bytes > *file_.size) {
      fail(ErrorCode::kDataLoss, file_.url.printable(), ": has ", bytes, " bytes; the listing says ", *file_.size);
    }
  }

  bool take(std::string_view bytes) {
    check_total(part_.size() + bytes.size());
    part_.append(bytes);
    return true;
  }

  const RemoteFile& file_;
  const RemoteFiles& remote_;
  const DownloadLimits& limits_;
  Part& part_;
  std::optional<uint64_t> total_;
  bool was_restarted_ = false;
};

// What is wrong with the bytes; empty: nothing.
std::string fault_of(const RemoteFile& file, const std::string& path) {
  const uint64_t size = fs::file_size(path);
  if (file.size && size != *file.size) return concat("has ", size, " bytes, and ", *file.size, " are expected");
  if (file.sha256.empty() && file.git_sha1.empty()) return {};
  const FileChecksums sums = checksums_of(path);
  if (!file.sha256.empty() && sums.sha256 != file.sha256)
    return concat("has the SHA-256 ", sums.sha256, ", and ", file.sha256, " is expected");
  if (!file.git_sha1.empty() && sums.git_sha1 != file.git_sha1)
    return concat("has the git hash ", sums.git_sha1, ", and ", file.git_sha1, " is expected");
  return {};
}

}  // namespace

void download(const RemoteFile& file, const RemoteFiles& remote, const std::string& path,
              const DownloadLimits& limits) {
  Part part(path);
  while (true) {
    const bool had_bytes = part.size() > 0;
    Download run(file, remote, limits, part);
    with_retries(limits.retries, [&] { run.once(); });
    const std::string fault = fault_of(file, part.path());
    if (fault.empty()) break;
    part.restart("");
    // What lay there may have been of another file; bytes that came just now are not asked for again.
    if (had_bytes && !run.was_restarted()) continue;
    part.remove();
    fail(ErrorCode::kDataLoss, file.url.printable(), ": ", fault);
  }
  part.flush();
  part.rename_to(path);
}

}  // namespace tensord::server
