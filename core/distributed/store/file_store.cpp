#include "core/distributed/store/file_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/base/mutex.h"

namespace tensord::distributed {
namespace {

constexpr Milliseconds kPollInterval{10};
constexpr const char* kHandles = "handles-";  // number of open handles; the last one removes the file

struct Header {
  char kind;  // 's' for set, 'r' for remove
  uint32_t key_size, value_size;
};

}  // namespace

class FileStore::Lock {
 public:
  explicit Lock(const FileStore& store) : fd_(store.file_->get()) {
    while (flock(fd_, LOCK_EX) != 0) {
      if (errno != EINTR) store.fail_file("cannot be locked");
    }
  }
  ~Lock() { flock(fd_, LOCK_UN); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  const int fd_;
};

template <class Fn>
auto FileStore::locked(const Fn& fn) {
  const MutexLock guard(mutex_);
  const Lock lock(*this);
  read_on();
  return fn();
}

FileStore::FileStore(std::string path, Milliseconds timeout) : Store(timeout), path_(std::move(path)) {
  for (;;) {
    file_ = std::make_unique<FileDescriptor>(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (file_->get() < 0) fail_file("cannot be opened");
    const Lock lock(*this);
    struct stat status;
    if (fstat(file_->get(), &status) != 0) fail_file("cannot be read");
    if (status.st_nlink == 0) continue;  // the last handle removed the file in the meantime
    read_on();
    const std::string* const handles = table_.find(kHandles);
    write_set(kHandles, std::to_string(add_to_text(kHandles, handles ? *handles : "0", 1)));
    return;
  }
}

FileStore::~FileStore() {
  try {
    locked([this] {
      const std::string* const handles = table_.find(kHandles);
      const int64_t left = handles ? add_to_text(kHandles, *handles, -1) : 0;
      write_set(kHandles, std::to_string(left));
      if (left == 0) unlink(path_.c_str());
    });
  } catch (const Error&) {
    // The file is left behind; nothing needs it.
  }
}

void FileStore::fail_file(const char* what) const {
  fail(ErrorCode::kUnavailable, path_, ": the store's file ", what, ": ", std::strerror(errno));
}

// Reads complete records only: the rest was left by a process that was killed.
void FileStore::read_on() {
  const off_t size = lseek(file_->get(), 0, SEEK_END);
  if (size < 0) fail_file("cannot be read");
  if (size <= end_bytes_) return;
  std::string bytes(static_cast<size_t>(size - end_bytes_), '\0');
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t got =
        pread(file_->get(), bytes.data() + done, bytes.size() - done, end_bytes_ + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail_file("cannot be read");
    done += static_cast<size_t>(got);
  }
  size_t at = 0;
  Header header{};
  while (bytes.size() - at >= sizeof(header)) {
    std::memcpy(&header, bytes.data() + at, sizeof(header));
    if (bytes.size() - at - sizeof(header) < size_t{header.key_size} + header.value_size) break;
    const std::string key = bytes.substr(at + sizeof(header), header.key_size);
    if (header.kind == 's') {
      table_.set(key, bytes.substr(at + sizeof(header) + header.key_size, header.value_size));
    } else {
      table_.remove(key);
    }
    at += sizeof(header) + header.key_size + header.value_size;
  }
  end_bytes_ += static_cast<int64_t>(at);
}

void FileStore::write_record(char kind, const std::string& key, const std::string& value) {
  tensord::check(key.size() <= UINT32_MAX && value.size() <= UINT32_MAX, "store: a key or value of 4 GiB");
  Header header;
  std::memset(&header, 0, sizeof(header));
  header.kind = kind;
  header.key_size = static_cast<uint32_t>(key.size());
  header.value_size = static_cast<uint32_t>(value.size());
  std::string record(reinterpret_cast<const char*>(&header), sizeof(header));
  record += key;
  record += value;
  if (ftruncate(file_->get(), end_bytes_) != 0) fail_file("cannot be written");
  for (size_t done = 0; done < record.size();) {
    const ssize_t put =
        pwrite(file_->get(), record.data() + done, record.size() - done, end_bytes_ + static_cast<off_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      const int reason = errno;
      // Do not leave a partial record.
      if (ftruncate(file_->get(), end_bytes_) == 0) errno = reason;
      fail_file("cannot be written");
    }
    done += static_cast<size_t>(put);
  }
  end_bytes_ += static_cast<int64_t>(record.size());
}

void FileStore::write_set(const std::string& key, const std::string& value) {
  write_record('s', key, value);
  table_.set(key, value);
}

void FileStore::write_remove(const std::string& key) {
  write_record('r', key, "");
  table_.remove(key);
}

void FileStore::set(const std::string& key, const std::string& value) {
  locked([&] { write_set(key, value); });
}

std::string FileStore::get(const std::string& key, Milliseconds timeout) {
  wait(key, timeout);
  return locked([&] {
    const std::string* const found = table_.find(key);
    if (!found) fail(ErrorCode::kNotFound, "store: key ", key, " was removed");
    return *found;
  });
}

void FileStore::wait(std::span<const std::string> keys, Milliseconds timeout) {
  timeout = chosen(timeout);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    if (is_interrupted_) fail_store_interrupted();
    if (locked([&] { return table_.has_all(keys); })) return;
    if (std::chrono::steady_clock::now() >= deadline) fail_store_timeout(keys, timeout);
    std::this_thread::sleep_for(kPollInterval);
    check_work_cancelled();
  }
}

bool FileStore::check(std::span<const std::string> keys) {
  return locked([&] { return !keys.empty() && table_.has_all(keys); });
}

int64_t FileStore::add(const std::string& key, int64_t amount) {
  return locked([&] {
    const std::string* const present = table_.find(key);
    const int64_t sum = present ? add_to_text(key, *present, amount) : amount;
    write_set(key, std::to_string(sum));
    return sum;
  });
}

std::string FileStore::compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  return locked([&] {
    const std::string* const present = table_.find(key);
    if (!present && !expected.empty()) return expected;
    if (present && *present != expected) return *present;
    write_set(key, desired);
    return desired;
  });
}

void FileStore::append(const std::string& key, const std::string& value) {
  locked([&] {
    const std::string* const present = table_.find(key);
    write_set(key, present ? *present + value : value);
  });
}

bool FileStore::remove(const std::string& key) {
  return locked([&] {
    if (!table_.find(key)) return false;
    write_remove(key);
    return true;
  });
}

int64_t FileStore::count() {
  return locked([&] { return table_.count(); });
}

std::vector<std::string> FileStore::list_keys() {
  return locked([&] { return table_.keys(); });
}

void FileStore::queue_push(const std::string&, const std::string&) {
  fail(ErrorCode::kUnimplemented, "store: a file store has no queues");
}
std::string FileStore::queue_pop(const std::string&, Milliseconds) {
  fail(ErrorCode::kUnimplemented, "store: a file store has no queues");
}
int64_t FileStore::queue_size(const std::string&) {
  fail(ErrorCode::kUnimplemented, "store: a file store has no queues");
}

std::shared_ptr<Store> FileStore::clone() { return std::make_shared<FileStore>(path_, timeout()); }

}  // namespace tensord::distributed
